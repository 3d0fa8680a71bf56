"""The benchmark `lookup`: keys answered by one assignment manager."""
