/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of CPUs: parsing and formatting. */
#include <criterion/criterion.h>

#include "base/compiler.h"
#include "topo/cpus.h"

/* `again` NULL: it is no list. */
static const struct {
    const char *text, *again;
} rows[] = {
    {"", ""},
    {"0", "0"},
    {"0-3,8", "0-3,8"},
    {"8,0,1,2,3", "0-3,8"},
    {"2-2", "2"},
    {"1,1", "1"},
    {"1022-1023", "1022-1023"},
    {"1024", NULL},
    {"99999999999999999999", NULL},
    {"3-1", NULL},
    {"1-", NULL},
    {"-1", NULL},
    {"1,", NULL},
    {",1", NULL},
    {"1 2", NULL},
    {"(null)", NULL}, /* the text of some kernels for an absent set */
};

Test(topo_cpus, lists)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        char text[64];
        cpu_set_t set;
        cr_expect_eq(nj_cpus_parse(rows[i].text, &set), rows[i].again != NULL, "row %zu", i);
        nj_cpus_format(&set, text, sizeof text);
        cr_expect_str_eq(text, rows[i].again ? rows[i].again : "", "row %zu", i);
    }
}

Test(topo_cpus, a_text_that_is_cut_ends_with_a_whole_number)
{
    char text[8];
    cpu_set_t set;

    cr_assert(nj_cpus_parse("10,20,30", &set));
    nj_cpus_format(&set, text, sizeof text);
    cr_expect_str_eq(text, "10,20");
}
