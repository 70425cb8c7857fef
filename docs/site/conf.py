"""Settings of Sphinx for `make docs`. tests/project/pages/site.py copies the pages to build."""

project = "mcpwrap"
html_title = "mcpwrap"
root_doc = "index"  # README.md
extensions = ["myst_parser", "tests.project.pages.manual_links"]

# Links of the pages are those of a forge: paths of files, and anchors of headings.
myst_heading_anchors = 6
# A link without a target is an error, and none is guessed from titles.
nitpicky = True

# A block without a language is a drawing or the output of a command.
highlight_language = "none"

# `--` is typed, in manual pages more than anywhere else.
smartquotes = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}  # of a forge: view and edit
