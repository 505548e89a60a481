// A library that exists because clients name it among their dependencies; it exports nothing.
