"""What is here: where installs are, what one holds, which libraries and chips it is for."""
