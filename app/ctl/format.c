/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/format.h"

#include <stdio.h>

#include "base/compiler.h"

void ctl_format_bytes(double n, const char *end, char *text, size_t n_text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;

    while (n >= 1024 && i + 1 < NJ_ARRAY_LEN(units)) {
        n /= 1024;
        i++;
    }
    snprintf(text, n_text,
             n >= 1024 ? "%.0e %s%s"
             : i > 0   ? "%.1f %s%s"
                       : "%.0f %s%s",
             n, units[i], end);
}

/* Unicode 15: categories Cc, Cf, Co, Cs, Zl, Zp, noncharacters, and tags. */
static const struct {
    uint32_t first, last;
} not_shown[] = {{0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
                 {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
                 {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
                 {0x2060, 0x2064},   {0x2066, 0x206f},   {0xd800, 0xf8ff},   {0xfdd0, 0xfdef},
                 {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
                 {0x110cd, 0x110cd}, {0x13430, 0x13438}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                 {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff}, {0x3fffe, 0x3ffff}, {0x4fffe, 0x4ffff},
                 {0x5fffe, 0x5ffff}, {0x6fffe, 0x6ffff}, {0x7fffe, 0x7ffff}, {0x8fffe, 0x8ffff},
                 {0x9fffe, 0x9ffff}, {0xafffe, 0xaffff}, {0xbfffe, 0xbffff}, {0xcfffe, 0xcffff},
                 {0xdfffe, 0xe00ff}, {0xe01f0, 0xe0fff}, {0xefffe, 0x10ffff}};

bool ctl_is_shown(uint32_t code)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(not_shown); i++)
        if (code >= not_shown[i].first && code <= not_shown[i].last)
            return false;
    return code <= 0x10ffff;
}
