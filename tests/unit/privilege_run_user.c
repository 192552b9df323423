/* SPDX-License-Identifier: BSD-3-Clause */
/* --user: names, numbers, groups, and their errors. Users are those that each Debian has. */
#include <criterion/criterion.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "privilege/run_user.h"

static struct nj_run_user user;
static char why[256];

static int find(const char *text)
{
    why[0] = '\0';
    return nj_run_user_find(text, &user, why, sizeof why);
}

Test(run_user, names_and_numbers)
{
    const struct passwd *daemon = getpwnam("daemon");

    cr_assert(daemon);
    cr_assert_eq(find("daemon"), 0, "%s", why);
    cr_assert_str_eq(user.name, "daemon");
    cr_assert_eq(user.uid, 1);
    cr_assert_eq(user.gid, 1);
    cr_assert_eq(user.groups[0], 1); /* its groups contain the first one */
    cr_assert_geq(user.n_groups, 1);
    cr_assert_eq(find("1"), 0, "%s", why);
    cr_assert_str_eq(user.name, "daemon");
}

Test(run_user, another_group)
{
    cr_assert_eq(find("daemon:adm"), 0, "%s", why);
    cr_assert_eq(user.gid, getgrnam("adm")->gr_gid);
    cr_assert_str_eq(user.group, "adm");
    cr_assert_eq(find("daemon:54321"), 0, "%s", why);
    cr_assert_eq(user.gid, 54321);
    cr_assert_str_eq(user.group, "54321");
}

Test(run_user, a_number_without_a_name)
{
    cr_assert_eq(find("54321:54322"), 0, "%s", why);
    cr_assert_str_eq(user.name, "54321");
    cr_assert_eq(user.uid, 54321);
    cr_assert_eq(user.n_groups, 1);
    cr_assert_eq(user.groups[0], 54322);
    cr_assert_eq(find("54321"), -1);
    cr_assert(strstr(why, "54321:GROUP"), "%s", why);
}

Test(run_user, the_default)
{
    cr_assert_eq(find(NULL), 0, "%s", why);
    cr_assert_str_eq(user.name, getpwnam("nightjar") ? "nightjar" : "nobody");
    cr_assert_neq(user.uid, 0);
}

Test(run_user, errors)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "expected NAME or NAME:GROUP"},
        {":adm", "expected NAME or NAME:GROUP"},
        {"daemon:", "expected NAME or NAME:GROUP"},
        {"no-such-user", "there is no user no-such-user"},
        {"daemon:no-such-group", "there is no group no-such-group"},
        {"4294967295:adm", "there is no user"},
        {"99999999999999999999:adm", "there is no user"},
        {"-1:adm", "there is no user"},
        {"root:nogroup", "--user root: this user keeps all privileges, so it takes no group"},
        {"0:0", "--user 0: this user keeps all privileges, so it takes no group"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_eq(find(cases[i].text), -1, "%s", cases[i].text);
        cr_expect(strstr(why, cases[i].why), "%s: %s", cases[i].text, why);
    }
}
