/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up the user and the groups of --user (getpwnam(3), getgrouplist(3)). */
#include "privilege/run_user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/set_error.h"

#define ID_MAX 0xfffffffeul /* (uid_t)-1 is no user (setresuid(2)) */

static bool parse_id(const char *text, unsigned long *id)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *id = strtoul(text, &end, 10);
    return *end == '\0' && errno == 0 && *id < ID_MAX;
}

static int find_group(const char *text, struct nj_run_user *out, char *why, size_t n)
{
    const struct group *g = getgrnam(text);
    unsigned long id;

    if (!g && !parse_id(text, &id))
        return nj_set_error(why, n, "--user: there is no group %s (getent group lists them)", text);
    out->gid = g ? g->gr_gid : (gid_t)id;
    return 0;
}

static int find_user(const char *name, const char *group, struct nj_run_user *out, char *why,
                     size_t n)
{
    const struct passwd *p = getpwnam(name);
    unsigned long id;

    if (!p && parse_id(name, &id))
        p = getpwuid((uid_t)id);
    else if (!p)
        return nj_set_error(why, n,
                            "--user: there is no user %s: useradd --system --no-create-home %s, or "
                            "name another user",
                            name, name);
    if (!p && !group)
        return nj_set_error(why, n, "--user %s: the user has no name, so give its group: %s:GROUP",
                            name, name);
    snprintf(out->name, sizeof out->name, "%s", p ? p->pw_name : name);
    out->uid = p ? p->pw_uid : (uid_t)id;
    out->gid = p ? p->pw_gid : 0;
    if (group && out->uid == 0)
        return nj_set_error(
            why, n, "--user %s: this user keeps all privileges, so it takes no group", name);
    if (group && find_group(group, out, why, n) != 0)
        return -1;
    out->n_groups = NJ_RUN_GROUPS_MAX;
    if (!p) {
        out->n_groups = 1;
        out->groups[0] = out->gid;
    } else if (getgrouplist(out->name, out->gid, out->groups, &out->n_groups) < 0) {
        return nj_set_error(why, n, "--user %s: it has more than %d groups", out->name,
                            NJ_RUN_GROUPS_MAX);
    }
    const struct group *g = getgrgid(out->gid);
    if (g)
        snprintf(out->group, sizeof out->group, "%s", g->gr_name);
    else
        snprintf(out->group, sizeof out->group, "%u", (unsigned)out->gid);
    return 0;
}

int nj_run_user_find(const char *text, struct nj_run_user *out, char *why, size_t n)
{
    char name[NJ_RUN_NAME_BYTES];

    memset(out, 0, sizeof *out);
    if (!text)
        text = getpwnam(NJ_RUN_USER) ? NJ_RUN_USER : NJ_RUN_USER_NOBODY;
    const char *colon = strchr(text, ':');
    size_t n_name = colon ? (size_t)(colon - text) : strlen(text);
    if (n_name == 0 || n_name >= sizeof name || (colon && !colon[1]))
        return nj_set_error(why, n, "--user %s: expected NAME or NAME:GROUP", text);
    memcpy(name, text, n_name);
    name[n_name] = '\0';
    return find_user(name, colon ? colon + 1 : NULL, out, why, n);
}
