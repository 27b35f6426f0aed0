"""Every dialogue in both languages, as either platform would show it: scenes, who plays them, and the page they fill."""
