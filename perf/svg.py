# SPDX-License-Identifier: BSD-3-Clause
"""Charts of what was measured, by gnuplot."""
import subprocess

HEAD = """
set terminal svg size 1200,{height} font 'sans,11' background rgb 'white'
set output '{path}'
set multiplot layout {rows},2 {title}
set grid
{settings}
"""


def multiplot(path, plots, row_height, settings, title=""):
    """`plots` are gnuplot's words for one chart each; two stand in a row."""
    rows = (len(plots) + 1) // 2
    script = HEAD.format(path=path, height=row_height * rows, rows=rows, settings=settings,
                         title=f"title '{title}'" if title else "")
    subprocess.run(["gnuplot"], input=script + "".join(plots) + "unset multiplot\n", text=True,
                   check=True)
