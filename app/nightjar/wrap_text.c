/* SPDX-License-Identifier: BSD-3-Clause */
#include "wrap_text.h"

#include <stdbool.h>
#include <string.h>

void wrap_text(FILE *out, const char *text, int at, int indent)
{
    bool begins_line = true;

    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        int n = (int)strcspn(text, " ");
        if (at + !begins_line + n > WRAP_WIDTH) {
            fputc('\n', out);
            at = 0;
            begins_line = true;
        }
        if (at < indent)
            at += fprintf(out, "%*s", indent - at, "");
        at += fprintf(out, "%s%.*s", begins_line ? "" : " ", n, text);
        begins_line = false;
        text += n;
    }
    fputc('\n', out);
}
