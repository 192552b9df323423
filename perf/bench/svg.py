# SPDX-License-Identifier: BSD-3-Clause
"""Charts of what was measured, by gnuplot."""
import subprocess

HEAD = """
set terminal svg size 1200,{height} font 'sans,11' background rgb 'white'
set output '{path}'
set multiplot layout {rows},{columns} {title}
set grid
{settings}
"""


def multiplot(path, plots, row_height, settings, title="", columns=2):
    """`plots` are gnuplot's words for one chart each; `columns` of them stand in a row."""
    rows = (len(plots) + columns - 1) // columns
    script = HEAD.format(path=path, height=row_height * rows, rows=rows, settings=settings,
                         columns=columns, title=f"title '{title}'" if title else "")
    subprocess.run(["gnuplot"], input=script + "".join(plots) + "unset multiplot\n", text=True,
                   check=True)
