"""Figures of a reader's own numbers. An explorer is NAME.toml, its figure and its fields, and NAME.py:

    draw           the function of scripts/figures that also draws the page's still figure
    trace(values)  what it draws from, by the functions of scripts/traces; FieldError where values do not fit

scripts/runner/explore.py draws one in the page; scripts/explore_page.py makes its form in the site's build.
"""
