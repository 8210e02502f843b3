"""What a caller passes becomes what the library takes."""
