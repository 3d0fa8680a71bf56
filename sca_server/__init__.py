"""The sCA server (section 3.2 of the paper): simple commands, matched with CFs in memory."""
