/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrapped text of --help. */
#pragma once

#include <stdio.h>

#define WRAP_WIDTH  100 /* columns of the page */
#define WRAP_INDENT 26  /* the column where help texts begin */

/* Prints the words of `text` in columns `indent` to WRAP_WIDTH, of which the first `at` are
 * printed, and ends the line. */
void wrap_text(FILE *out, const char *text, int at, int indent);
