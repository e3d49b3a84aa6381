"""What an author of jobs imports."""
