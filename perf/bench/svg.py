# SPDX-License-Identifier: BSD-3-Clause
"""Charts of the results, by gnuplot."""
import subprocess

HEAD = """
set terminal svg size 1200,{height} font 'sans,11' background rgb 'white'
set output '{path}'
set multiplot layout {rows},{columns} {title}
set grid
{settings}
"""


def multiplot(path, plots, row_height, settings, title="", columns=2):
    """`plots` are gnuplot commands for one chart each; a row has `columns` charts."""
    rows = (len(plots) + columns - 1) // columns
    script = HEAD.format(path=path, height=row_height * rows, rows=rows, settings=settings,
                         columns=columns, title=f"title '{title}'" if title else "")
    subprocess.run(["gnuplot"], input=script + "".join(plots) + "unset multiplot\n", text=True,
                   check=True)
