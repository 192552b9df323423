/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that exist already, of the EAL, run drop_on_thread() in a signal handler. Later threads
 * inherit (clone(2)). */
#include "privilege/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/set_error.h"
#include "log/log.h"
#include "privilege/landlock_folders.h"
#include "privilege/run_on_all_threads.h"
#include "rights/syscall_filter.h"

#define CAPS_MAX 64

struct drop {
    bool sets_user;
    const struct nj_run_user *user;
    int landlock_fd; /* or -1 */
};

/* --- on each thread: async-signal-safe -------------------------------------------------------- */

/* Without CAP_SETPCAP the bounding set stays: no_new_privs makes it useless. */
static void drop_bounding_set(void)
{
    for (int cap = 0; cap < CAPS_MAX; cap++)
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* System calls, because glibc's functions set the ids of all threads. */
static int set_ids(const struct nj_run_user *u)
{
    bool ok = syscall(SYS_setgroups, u->n_groups, u->groups) == 0 &&
              syscall(SYS_setresgid, u->gid, u->gid, u->gid) == 0 &&
              syscall(SYS_setresuid, u->uid, u->uid, u->uid) == 0;

    return ok ? 0 : errno;
}

static int drop_on_thread(void *ctx)
{
    const struct drop *d = ctx;
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    drop_bounding_set();
    int err = d->sets_user ? set_ids(d->user) : 0;
    if (err != 0)
        return err;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) != 0)
        return errno;
    if (d->landlock_fd >= 0 && syscall(SYS_landlock_restrict_self, d->landlock_fd, 0) != 0)
        return errno;
    return 0;
}

/* --- before: what the user needs of root ------------------------------------------------------ */

/* Root may lock memory without limit; its successor maps memory for the NIC (vfio) and for io_uring
 * only within this limit. */
static void raise_memlock_limit(void)
{
    const struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    (void)setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* --- the user --------------------------------------------------------------------------------- */

int nj_privileges_init(struct nj_privileges *p, bool is_enabled, const char *wanted, char *why,
                       size_t n)
{
    struct nj_run_user *u = &p->user;
    uid_t real, effective, saved;

    *p = (struct nj_privileges){.is_enabled = is_enabled};
    if (!is_enabled)
        return 0;
    if (getresuid(&real, &effective, &saved) != 0 || real != effective || saved != effective)
        return nj_set_error(
            why, n,
            "the real, effective and saved user ids of the process differ: it could "
            "take back what it gives up; set all three (setresuid(2)) before");
    if (!wanted && geteuid() != 0) { /* stays who it is, even without a name */
        *u = (struct nj_run_user){.uid = geteuid(), .gid = getegid()};
        snprintf(u->name, sizeof u->name, "%u", (unsigned)u->uid);
        snprintf(u->group, sizeof u->group, "%u", (unsigned)u->gid);
        return 0;
    }
    if (nj_run_user_find(wanted, u, why, n) != 0)
        return -1;
    if (geteuid() != 0 && (u->uid != geteuid() || u->gid != getegid()))
        return nj_set_error(why, n,
                            "--user %s: only root can become another user, and this is user %u: "
                            "start it as root, or as %s and without --user",
                            wanted, (unsigned)geteuid(), u->name);
    return 0;
}

bool nj_privileges_keep_root(const struct nj_privileges *p)
{
    return geteuid() == 0 && !nj_privileges_change_user(p);
}

bool nj_privileges_change_user(const struct nj_privileges *p)
{
    return geteuid() == 0 && p->is_enabled && p->user.uid != 0;
}

/* --- the step --------------------------------------------------------------------------------- */

static int drop(struct drop *d, bool has_own_code, char *why, size_t n)
{
    char cause[256];

    if (d->sets_user)
        raise_memlock_limit();
    int rc = nj_run_on_all_threads(drop_on_thread, d, cause, sizeof cause);
    if (rc == 0) /* a change of the user clears it; docs/adr/0014 wants core dumps */
        rc = prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0
                 ? nj_syscall_deny_list_load(cause, sizeof cause)
                 : nj_set_error(cause, sizeof cause, "prctl: %s", strerror(errno));
    if (rc == 0 && !has_own_code)
        rc = nj_syscall_allow_list_prepare(cause, sizeof cause);
    return rc == 0 ? 0 : nj_set_error(why, n, "cannot give up privileges: %s", cause);
}

int nj_privileges_drop(const struct nj_privileges *p, const struct nj_needed_file *file,
                       uint32_t n_files, bool has_own_code, char *why, size_t n)
{
    const struct nj_run_user *u = &p->user;

    if (!p->is_enabled)
        return 0;
    if (nj_privileges_keep_root(p)) {
        nj_log(NJ_LEVEL_WARNING,
               "--user %s: the server keeps all privileges of root; this is for devices that need "
               "them (docs/deploy.md)",
               u->name);
        return 0;
    }
    struct drop d = {.sets_user = nj_privileges_change_user(p),
                     .user = u,
                     .landlock_fd = has_own_code ? -1 : nj__landlock_open(file, n_files)};
    int rc = drop(&d, has_own_code, why, n);
    if (d.landlock_fd >= 0)
        close(d.landlock_fd);
    if (rc != 0 || nj__needed_files_check(file, n_files, u, why, n) != 0)
        return -1;
    nj_log(NJ_LEVEL_INFO, "runs as user %s, group %s, without capabilities; seccomp%s", u->name,
           u->group, d.landlock_fd >= 0 ? ", Landlock" : "");
    return 0;
}
