"""What did the user type? The command line, one verb a file."""
