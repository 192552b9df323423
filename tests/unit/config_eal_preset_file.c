/* SPDX-License-Identifier: BSD-3-Clause */
/* All files of drivers-config; and files with errors. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "config/eal_preset_file.h"

static bool says(struct nj_str s, const char *text)
{
    return s.n_bytes == strlen(text) && memcmp(s.p, text, s.n_bytes) == 0;
}

Test(config_eal_preset_file, each_file)
{
    uint32_t n = 0;

    for (const struct nj_preset_file *f = nj_preset_files; f->name; f++, n++) {
        struct nj_preset p;
        char why[256] = "";
        cr_expect_eq(nj_preset_parse(f, &p, why, sizeof why), 0, "%s", why);
        cr_expect_eq(nj_preset_find((struct nj_str){f->name, (uint32_t)strlen(f->name)}), f);
        bool has_variable = strstr(f->text, "{pci}");
        cr_expect_eq(has_variable,
                     nj_preset_key_allowed_times(&p, NJ_STR("pci")) == NJ_KEY_REPEATABLE, "%s",
                     f->name);
        cr_expect_eq(has_variable, !says(p.bind, "none"), "%s", f->name);
        cr_expect_lt(p.title.n_bytes, 90, "%s", f->name);
    }
    cr_expect_geq(n, 18);
}

Test(config_eal_preset_file, facts)
{
    const struct nj_preset_file f = {"x", "#\n"
                                          "# A device: net_x.\n"
                                          "# More.\n"
                                          "#: driver net_x  net_y\n"
                                          "#: bind vfio-pci\n"
                                          "#:queues 12\n"
                                          "#: offloads tx-checksum rx-checksum?\n"
                                          "#: rss rings\n"
                                          "#: needs pci... member\n"
                                          "#: takes mode\n"
                                          "#: tried no\n"
                                          "#: source nowhere\n"
                                          "\n"
                                          "-a {pci}\n"
                                          "  --no-huge\t-m 512\n"
                                          "# end"};
    struct nj_preset p;
    char why[256] = "", near[32];
    struct nj_str line, word;
    const char *at = f.text;

    cr_assert_eq(nj_preset_parse(&f, &p, why, sizeof why), 0, "%s", why);
    cr_expect(says(p.title, "A device: net_x."));
    cr_expect(nj_preset_word_list_contains(p.driver, NJ_STR("net_y")) &&
              !nj_preset_word_list_contains(p.driver, NJ_STR("net")));
    cr_expect_eq(p.queues, 12);
    cr_expect_eq(p.offloads, NJ_PRESET_TX_CHECKSUM);
    cr_expect_eq(p.offloads_optional, NJ_PRESET_RX_CHECKSUM);
    cr_expect_eq(p.rss, NJ_PRESET_RSS_RINGS);
    cr_expect_eq(nj_preset_key_allowed_times(&p, NJ_STR("pci")), NJ_KEY_REPEATABLE);
    cr_expect_eq(nj_preset_key_allowed_times(&p, NJ_STR("member")), NJ_KEY_ONCE);
    cr_expect_eq(nj_preset_key_allowed_times(&p, NJ_STR("mode")), NJ_KEY_ONCE);
    cr_expect_eq(nj_preset_key_allowed_times(&p, NJ_STR("mod")), NJ_KEY_UNKNOWN);
    cr_expect_eq(nj_preset_key_allowed_times(&p, NJ_STR("pci...")), NJ_KEY_UNKNOWN);
    cr_expect(nj_preset_closest_key(&p, NJ_STR("mod"), near, sizeof near));
    cr_expect_str_eq(near, "mode");
    cr_expect(!nj_preset_closest_key(&p, NJ_STR("zzzzzz"), near, sizeof near));
    cr_assert(nj_preset_next_arg_line(&at, &line) && says(line, "-a {pci}"));
    cr_assert(nj_preset_next_arg_line(&at, &line));
    cr_assert(nj_str_next_word(&line, &word) && says(word, "--no-huge"));
    cr_assert(nj_str_next_word(&line, &word) && says(word, "-m"));
    cr_assert(nj_str_next_word(&line, &word) && says(word, "512"));
    cr_expect(!nj_str_next_word(&line, &word));
    cr_expect(!nj_preset_next_arg_line(&at, &line));
}

#define HEAD     "# T.\n#: driver d\n#: bind b\n#: tried t\n#: source s\n"
#define OFFLOADS "#: offloads none\n"
#define REST     "#: queues 1\n#: rss any\n" OFFLOADS

Test(config_eal_preset_file, wrong)
{
    static const struct {
        const char *text, *why;
    } files[] = {
        {HEAD "#: rss any\n" OFFLOADS "-a\n", "x.args: no queues"},
        {HEAD REST, "x.args: no arguments"},
        {"#: driver d\n", "x.args: no title"},
        {"#:\n", "x.args:1: expected a fact behind \"#:\""},
        {"# T.\n#: rss\n", "x.args:2: expected a value behind \"rss\""},
        {"# T.\n#: speed 10\n", "x.args:2: there is no fact \"speed\""},
        {HEAD "#: driver e\n", "x.args:6: said twice: \"driver\""},
        {HEAD "#: rss any\n#: queues many\n" OFFLOADS "-a\n",
         "x.args:9: queues: expected a number, not \"many\""},
        {HEAD "#: rss any\n#: queues 0\n" OFFLOADS "-a\n",
         "x.args:9: queues: expected a number from 1, not \"0\""},
        {HEAD "#: rss any\n#: queues 1\n#: offloads tso lro\n-a\n",
         "x.args:9: there is no offload \"lro\""},
        {HEAD "#: rss yes\n#: queues 1\n" OFFLOADS "-a\n",
         "x.args:9: rss: expected device, rings or any, not \"yes\""},
    };

    for (size_t i = 0; i < NJ_ARRAY_LEN(files); i++) {
        const struct nj_preset_file f = {"x", files[i].text};
        struct nj_preset p;
        char why[256] = "";
        cr_expect_eq(nj_preset_parse(&f, &p, why, sizeof why), -1, "%s", files[i].text);
        cr_expect_str_eq(why, files[i].why);
    }
}

Test(config_eal_preset_file, names)
{
    cr_expect_null(nj_preset_find(NJ_STR("ixg")));
    cr_expect_null(nj_preset_find(NJ_STR("")));
    cr_expect_str_eq(nj_preset_closest(NJ_STR("ixbge")), "ixgbe");
    cr_expect_null(nj_preset_closest(NJ_STR("")));
    cr_expect_null(nj_preset_closest(NJ_STR("something-else-that-is-far-longer-than-any-name")));
}
