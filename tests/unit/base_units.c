/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units mean the same in a program that has set a locale of another language. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/compiler.h"
#include "base/units.h"
#include "support/scratch.h"

/* German has a decimal comma; Turkish another capital of i. */
static void set_language(const char *language, const char *charset)
{
    char command[512];

    snprintf(command, sizeof command, "localedef -i %s -f %s %s/%s >/dev/null 2>&1", language,
             charset, scratch, language);
    (void)!system(command);
    setenv("LOCPATH", scratch, 1);
    cr_assert_not_null(setlocale(LC_ALL, language), "%s: is Debian's package locales installed?",
                       command);
}

TestSuite(base_units, .init = scratch_make, .fini = scratch_remove);

Test(base_units, decimal_comma)
{
    char text[24];
    double seconds;
    uint64_t rate;

    set_language("de_DE", "UTF-8");
    snprintf(text, sizeof text, "%.1f", 1.5);
    cr_assert_str_eq(text, "1,5");
    cr_expect(nj_parse_seconds("1.5s", &seconds) && seconds == 1.5);
    cr_expect(nj_parse_rate("1.5MiB/s", &rate) && rate == 3 << 19);
    cr_expect(!nj_parse_seconds("1,5s", &seconds));
    nj_format_seconds(1.5, text, sizeof text);
    cr_expect_str_eq(text, "1.5s");
    snprintf(text, sizeof text, "%.1f", 1.5);
    cr_expect_str_eq(text, "1,5", "the program has its locale again");
}

Test(base_units, capital_of_i)
{
    set_language("tr_TR", "ISO-8859-9");
    cr_assert_neq(tolower('I'), 'i');
    cr_expect(nj_str_eq_nocase_cstr(NJ_STR("TRAILERS"), "trailers"));
    cr_expect_eq(nj_strncasecmp("GIF", "gif", 3), 0);
}

/* As strncasecmp() in the locale "C", for all pairs of bytes. */
Test(base_units, order_without_case)
{
    for (int i = 0; i < 65536; i++) {
        const char a[] = {'x', (char)(i >> 8), 'y', 0}, b[] = {'X', (char)i, 'Z', 0};
        int want = strncasecmp(a, b, 3), got = nj_strncasecmp(a, b, 3);
        cr_assert_eq((want > 0) - (want < 0), (got > 0) - (got < 0), "%02x %02x", i >> 8, i & 255);
    }
}

Test(base_units, units_are_missing)
{
    static const char *const numbers[] = {"1", "10", "0.5", "1000000"};
    static const char *const others[] = {"", "0", "0.0", ".", "1B", "1s", "none", "-1", "1 "};

    for (size_t i = 0; i < NJ_ARRAY_LEN(numbers); i++)
        cr_expect(nj_lacks_unit(numbers[i]), "%s", numbers[i]);
    for (size_t i = 0; i < NJ_ARRAY_LEN(others); i++)
        cr_expect(!nj_lacks_unit(others[i]), "%s", others[i]);
}
