/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a server gives up when its ports are open: its user, its capabilities, and system calls. A
 * step of bring-up, after those that need privileges and before those that open files of the
 * configuration, so that these are opened as the user that will read them again on SIGHUP.
 *
 * Threads that exist already, of the EAL, run drop_on_thread() in a signal handler. Later threads
 * inherit (clone(2)).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/set_error.h"
#include "config/config_by_name.h"
#include "dpdk/eal.h"
#include "log/access_file.h"
#include "log/log.h"
#include "server/server_internal.h"
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

/* --- after: can the user read what it has to read? -------------------------------------------- */

static int check_readable(const struct nj_run_user *u, const char *option, const char *path,
                          char *why, size_t n)
{
    bool is_folder = strcmp(option, "--root") == 0;

    if (!path || faccessat(AT_FDCWD, path, is_folder ? R_OK | X_OK : R_OK, AT_EACCESS) == 0 ||
        errno != EACCES)
        return 0; /* other errors are reported by those who open it */
    return nj_set_error(
        why, n,
        "%s %s: user %s (group %s) cannot read it: make it and the folders above it "
        "accessible, e.g. setfacl -m u:%s:%s %s (namei -l %s shows their modes), or "
        "choose another user with --user",
        option, path, u->name, u->group, u->name, is_folder ? "rx" : "r", path, path);
}

/* The file, or its folder if there is no such file. */
static int check_writable(const struct nj_run_user *u, const char *option, const char *path,
                          char *why, size_t n)
{
    char *copy = path ? strdup(path) : NULL;
    const char *which = !copy                                                       ? NULL
                        : faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? path
                        : errno == ENOENT                                           ? dirname(copy)
                                                                                    : path;
    int rc = 0;

    if (which && faccessat(AT_FDCWD, which, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0 &&
        errno == EACCES)
        rc = nj_set_error(why, n,
                          "%s %s: user %s (group %s) cannot write to %s: chown %s it, or choose "
                          "another user with --user",
                          option, path, u->name, u->group, which, u->name);
    free(copy);
    return rc;
}

static int check_access_log(const struct nj_run_user *u, const char *path, char *why, size_t n)
{
    char text[512];

    if (!path || nj_access_file_check(path, text, sizeof text) == 0)
        return 0;
    if (errno != EACCES && errno != EPERM) /* another user could not write it either */
        return nj_set_error(why, n, "%s", text);
    return nj_set_error(why, n,
                        "%s: user %s must be able to write it, and to make it again in its folder "
                        "after a rotation: chown %s the folder, or choose another user with --user",
                        text, u->name, u->name);
}

static int check_files(const struct nj_server *s, char *why, size_t n)
{
    const struct nj_run_user *u = &s->run_user;
    const struct nj_settings *set = &s->settings;
    const struct nj_server_config *c = set->config;
    int rc = check_readable(u, "--root", c->root, why, n);

    if (rc == 0)
        rc = check_readable(u, "--config", c->policy_file, why, n);
    for (uint32_t i = 0; rc == 0 && set->policy && i < set->policy->n_list_files; i++)
        rc = check_readable(u, "list", set->policy->list_file[i], why, n);
    for (uint32_t i = 0; rc == 0 && i < NJ_SERVER_TLS_CERTS_MAX; i++) {
        rc = check_readable(u, "--tls-cert", c->tls_cert[i], why, n);
        if (rc == 0)
            rc = check_readable(u, "--tls-key", c->tls_key[i], why, n);
        if (rc == 0)
            rc = check_readable(u, "--tls-ocsp", c->tls_ocsp[i], why, n);
    }
    if (rc == 0)
        rc = check_readable(u, "--tls-client-ca", c->tls_client_ca, why, n);
    if (rc == 0)
        rc = check_writable(u, "--keylog", c->tls_keylog, why, n);
    return rc == 0 ? check_access_log(u, c->access_log, why, n) : rc;
}

/* --- the step --------------------------------------------------------------------------------- */

static int find_user(struct nj_server *s)
{
    const char *wanted = s->given.user;
    struct nj_run_user *u = &s->run_user;
    uid_t real, effective, saved;

    if (getresuid(&real, &effective, &saved) != 0 || real != effective || saved != effective)
        return nj_set_error(
            s->why, sizeof s->why,
            "the real, effective and saved user ids of the process differ: it could "
            "take back what it gives up; set all three (setresuid(2)) before");
    if (!wanted && geteuid() != 0) { /* stays who it is, even without a name */
        *u = (struct nj_run_user){.uid = geteuid(), .gid = getegid()};
        snprintf(u->name, sizeof u->name, "%u", (unsigned)u->uid);
        snprintf(u->group, sizeof u->group, "%u", (unsigned)u->gid);
        return 0;
    }
    if (nj_run_user_find(wanted, u, s->why, sizeof s->why) != 0)
        return -1;
    if (geteuid() != 0 && (u->uid != geteuid() || u->gid != getegid()))
        return nj_set_error(s->why, sizeof s->why,
                            "--user %s: only root can become another user, and this is user %u: "
                            "start it as root, or as %s and without --user",
                            wanted, (unsigned)geteuid(), u->name);
    return 0;
}

bool nj__server_find_user(struct nj_server *s)
{
    return !s->given.drop_privileges || find_user(s) == 0;
}

bool nj__server_keeps_root(const struct nj_server *s)
{
    return geteuid() == 0 && (!s->given.drop_privileges || s->run_user.uid == 0);
}

static int drop(struct nj_server *s)
{
    char cause[256];
    struct drop d = {.sets_user = geteuid() == 0,
                     .user = &s->run_user,
                     .landlock_fd = nj__server_landlock_open(s)};

    if (d.sets_user) {
        raise_memlock_limit();
        if (nj_eal_give_runtime_dir(d.user->uid, d.user->gid, cause, sizeof cause) != 0)
            nj_log(NJ_LEVEL_WARNING, "%s: files stay there at the end", cause);
    }
    s->has_landlock = d.landlock_fd >= 0;
    int rc = nj_run_on_all_threads(drop_on_thread, &d, cause, sizeof cause);
    if (d.landlock_fd >= 0)
        close(d.landlock_fd);
    if (rc == 0) /* a change of the user clears it; docs/adr/0014 wants core dumps */
        rc = prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0
                 ? nj_syscall_deny_list_load(cause, sizeof cause)
                 : nj_set_error(cause, sizeof cause, "prctl: %s", strerror(errno));
    if (rc == 0 && !nj__server_has_own_code(&s->given))
        rc = nj_syscall_allow_list_prepare(cause, sizeof cause);
    return rc == 0 ? 0
                   : nj_set_error(s->why, sizeof s->why, "cannot give up privileges: %s", cause);
}

bool nj__server_drop_privileges(struct nj_server *s)
{
    const struct nj_run_user *u = &s->run_user;

    if (!s->given.drop_privileges)
        return true;
    if (nj__server_keeps_root(s)) {
        nj_log(NJ_LEVEL_WARNING,
               "--user %s: the server keeps all privileges of root; this is for devices that need "
               "them (docs/deploy.md)",
               u->name);
        return true;
    }
    if (drop(s) != 0 || check_files(s, s->why, sizeof s->why) != 0)
        return false;
    nj_log(NJ_LEVEL_INFO, "runs as user %s, group %s, without capabilities; seccomp%s", u->name,
           u->group, s->has_landlock ? ", Landlock" : "");
    return true;
}

void nj__server_forget_filter(struct nj_server *s)
{
    nj_syscall_allow_list_forget();
}
