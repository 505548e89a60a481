"""How it is called: arguments checked, marshalled, planned and launched."""
