"""The benchmark `command`: simple commands to a million devices."""
