"""The site: pages, Sphinx, search, licences."""
