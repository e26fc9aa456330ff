"""What every room uses: errors, files, text, progress, the interface language."""
