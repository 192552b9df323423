/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drops and restores the file access rights of a thread by setfsuid(2) and setgroups(2).
 * setfsuid(2) from 0 to another user removes CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and similar from
 * the thread's effective capabilities; back to 0 restores those permitted (capabilities(7)).
 * CAP_SETUID and CAP_SETGID remain. setfsuid(2) reports no errors, so the result is queried.
 */
#include "rights/thread_file_rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

/* An invalid id: the call changes nothing and returns the current id (setfsuid(2)). */
#define NO_ID ((uid_t)-1)

/* The group list of a thread with dropped rights. It differs from any list that the process sets
 * for all threads. */
static const gid_t no_groups[] = {NJ_NOBODY};

/* The supplementary groups that a thread dropped. */
struct groups {
    int n;
    gid_t list[];
};

static struct {
    pthread_once_t once;
    pthread_key_t key; /* struct groups of the thread */
    int err;
} saved = {.once = PTHREAD_ONCE_INIT};

/* The thread dropped rights and has not restored them. The kernel has the current ones: the process
 * may change those of all threads at any time (setxid of libc). */
static _Thread_local bool has_dropped;

static void make_key(void)
{
    saved.err = pthread_key_create(&saved.key, free);
}

static bool has_no_groups(void)
{
    gid_t g;
    int n = getgroups(1, &g);

    return n == 0 || (n == 1 && g == no_groups[0]);
}

/* Save the groups for the restore. Returns false on failure. */
static bool save_groups(void)
{
    int n = getgroups(0, NULL);
    struct groups *g = n < 0 ? NULL : malloc(sizeof *g + (size_t)n * sizeof g->list[0]);

    if (g)
        g->n = n > 0 ? getgroups(n, g->list) : 0;
    void *before = pthread_getspecific(saved.key);
    if (!g || g->n < 0 || pthread_setspecific(saved.key, g) != 0) {
        free(g);
        return false;
    }
    free(before);
    return true;
}

/* For this thread only: glibc's setgroups() affects all threads. */
static bool set_groups(int n, const gid_t *list)
{
    return syscall(SYS_setgroups, n, list) == 0;
}

static bool has_fs_ids(uid_t uid, gid_t gid)
{
    return (uid_t)setfsuid(NO_ID) == uid && (gid_t)setfsgid(NO_ID) == gid;
}

/* The kernel leaves capabilities as they are where SECBIT_NO_SETUID_FIXUP is set. */
static bool can_bypass_dac(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, caps) != 0)
        return true;
    return caps[0].effective & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
}

/* Restore user, group and groups of the process. If the process may not set groups any more, the
 * thread keeps the NJ_NOBODY group. */
static void restore_rights(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    const struct groups *g = pthread_getspecific(saved.key);
    gid_t now;

    setfsuid(uid);
    setfsgid(gid);
    has_dropped = false;
    if (getgroups(1, &now) == 1 && now == no_groups[0] && !set_groups(g->n, g->list)) {
        NJ_CHECK(errno == EPERM); /* a handler must not run without the groups of the process */
        has_dropped = true;
    }
    NJ_CHECK(has_fs_ids(uid, gid)); /* ... nor with the rights of others */
}

static bool drop_rights_once(void)
{
    bool again = has_dropped && has_no_groups();

    pthread_once(&saved.once, make_key);
    if (saved.err || (!again && !save_groups()))
        return false;
    if (!has_no_groups() && !set_groups(1, no_groups))
        return false;
    has_dropped = true;
    setfsgid(NJ_NOBODY);
    setfsuid(NJ_NOBODY);
    if (nj_file_rights_are_dropped())
        return true;
    restore_rights();
    return false;
}

bool nj_file_rights_are_dropped(void)
{
    uid_t uid = geteuid();

    if (uid != 0)
        return has_fs_ids(uid, getegid());
    return has_fs_ids(NJ_NOBODY, NJ_NOBODY) && has_no_groups() && !can_bypass_dac();
}

bool nj_file_rights_drop(void)
{
    return nj_file_rights_are_dropped() || (geteuid() == 0 && drop_rights_once());
}

void nj_file_rights_restore(void)
{
    if (has_dropped)
        restore_rights();
}

bool nj_file_rights_can_reach(const char *folder)
{
    struct stat st;
    return geteuid() != 0 || stat(folder, &st) != 0 || (st.st_mode & S_IXOTH) != 0;
}
