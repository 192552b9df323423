/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL arguments of the file, and those of the command line, which replace them. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/compiler.h"
#include "config/eal_args.h"

/* What the EAL gets for [eal] `lines` and the words of `given`. */
static const char *joined(const char *lines, const char *given)
{
    static char text[1024];
    char file[512], words[256], why[256] = "", *argv[32] = {"program"};
    struct nj_diags faults = {0};
    struct nj_server_config c;
    struct nj_presets presets;
    int argc = 1;
    size_t at = 0;

    nj_server_config_init(&c);
    snprintf(file, sizeof file, "[eal]\n%s", lines);
    struct nj_policy_file *f = nj_policy_file_parse("f", file, strlen(file), &c, &faults);
    cr_assert(f, "%s", faults.text);
    snprintf(words, sizeof words, "%s", given);
    for (char *save = NULL, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    int rc = nj_eal_args_expand(&presets, f, argc, argv, why, sizeof why);
    snprintf(text, sizeof text, "%s", why);
    for (int i = 0; rc == 0 && i < presets.argc; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", presets.argv[i]);
    cr_expect(rc != 0 || !presets.argv[presets.argc]);
    nj_presets_free(&presets);
    nj_policy_file_free(f);
    return text;
}

Test(config_eal_args, an_argument_replaces_those_of_its_name)
{
    static const struct {
        const char *lines, *given, *expected;
    } cases[] = {
        {"arguments = -l 2,3  -m 64\n", "", "program -l 2,3 -m 64"},
        {"arguments = -l 2,3 -m 64\n", "-l 4", "program -m 64 -l 4"},
        {"arguments = -l2,3 -m 64\n", "--lcores=4", "program -m 64 --lcores=4"},
        {"arguments = --lcores 2 --file-prefix=a -n 4\n", "-c f --file-prefix b",
         "program -n 4 -c f --file-prefix b"},
        {"arguments = -a 03:00.0\narguments = -a 04:00.0 --no-pci\n", "--vdev=net_null0",
         "program --no-pci --vdev=net_null0"},
        {"arguments = -l 1\n", "--log-level=8 --in-memory",
         "program -l 1 --log-level=8 --in-memory"},
        {"arguments = --log-level=lib.eal:7 --log-level-x=1\n", "--log-level=8",
         "program --log-level-x=1 --log-level=8"},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(cases); i++)
        cr_expect_str_eq(joined(cases[i].lines, cases[i].given), cases[i].expected);
}

Test(config_eal_args, presets)
{
    const char *tap = joined("preset = tap,iface=njx\n", "");
    cr_expect(strstr(tap, "iface=njx"), "%s", tap);
    tap = joined("arguments = -l 0\npreset = tap,iface=njx\n", "--preset tap,iface=njy");
    cr_expect(strstr(tap, "-l 0") && strstr(tap, "njy") && !strstr(tap, "njx"), "%s", tap);
    tap = joined("preset = tap,iface=njx\npreset = tap,iface=njy\n", "-l 1");
    cr_expect(strstr(tap, "njx") && strstr(tap, "njy") && strstr(tap, "-l 1"), "%s", tap);
    cr_expect(strstr(joined("preset = tapp\n", ""), "--preset tapp: "));
}

Test(config_eal_args, without_a_file)
{
    char program[] = "program", option[] = "-l", value[] = "1", why[64];
    char *argv[] = {program, option, value};
    struct nj_presets presets;

    cr_assert_eq(nj_eal_args_expand(&presets, NULL, 3, argv, why, sizeof why), 0);
    cr_expect_eq(presets.argc, 3);
    nj_presets_free(&presets);
    cr_assert_eq(nj_eal_args_expand(&presets, NULL, 0, NULL, why, sizeof why), 0);
    cr_expect_eq(presets.argc, 0);
    nj_presets_free(&presets);
}
