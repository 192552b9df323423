/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setfsuid(2) from 0 to another user takes CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and their like
 * from the effective capabilities of the thread, and back to 0 returns those that are permitted
 * (capabilities(7)). CAP_SETUID and CAP_SETGID stay, so the way back is open. setfsuid(2) tells
 * nothing of a failure: what came of it is asked.
 */
#include "server/file_rights.h"

#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

/* An id that is none: the call changes nothing and returns the one there is (setfsuid(2)). */
#define ASK ((uid_t)-1)

/* SAME: the process is not root's, and its own rights are what it serves with. */
static _Thread_local enum { OWN, OTHERS, SAME } rights;

/* The groups of the process besides its own one; the same in all threads that have their own
 * rights. Read once, when such a thread is about to give them up. */
static struct {
    pthread_once_t once;
    gid_t *list;
    int n; /* -1: they could not be read */
} groups = {.once = PTHREAD_ONCE_INIT};

static void read_groups(void)
{
    groups.n = getgroups(0, NULL);
    if (groups.n <= 0)
        return;
    groups.list = malloc((size_t)groups.n * sizeof groups.list[0]);
    groups.n = groups.list ? getgroups(groups.n, groups.list) : -1;
}

static bool acts_as(uid_t uid, gid_t gid)
{
    return (uid_t)setfsuid(ASK) == uid && (gid_t)setfsgid(ASK) == gid;
}

/* The kernel leaves capabilities as they are where SECBIT_NO_SETUID_FIXUP is set. */
static bool may_read_all(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, caps) != 0)
        return true;
    return caps[0].effective & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
}

/* To the user and group of the thread, which are those of the process. A process that has become
 * another user's meanwhile has no right to set groups, and stays in none. */
static void take_back(void)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    setfsuid(uid);
    setfsgid(gid);
    if (groups.n > 0)
        (void)syscall(SYS_setgroups, groups.n, groups.list);
    NJ_CHECK(acts_as(uid, gid)); /* a handler must not run with the rights of others */
}

static bool give_up(void)
{
    pthread_once(&groups.once, read_groups);
    if (groups.n < 0)
        return false;
    /* Asking costs a tenth. glibc's setgroups() would do it to all threads. */
    if (getgroups(0, NULL) != 0 && syscall(SYS_setgroups, 0, NULL) != 0)
        return false;
    setfsgid(NJ_NOBODY);
    setfsuid(NJ_NOBODY);
    if (acts_as(NJ_NOBODY, NJ_NOBODY) && !may_read_all())
        return true;
    take_back();
    return false;
}

bool nj_file_rights_use_others(void)
{
    if (rights != OWN)
        return true;
    if (geteuid() != 0)
        rights = SAME;
    else if (give_up())
        rights = OTHERS;
    return rights != OWN;
}

void nj_file_rights_use_own(void)
{
    if (rights != OTHERS)
        return;
    take_back();
    rights = OWN;
}

bool nj_file_rights_reach(const char *folder)
{
    struct stat st;
    return geteuid() != 0 || stat(folder, &st) != 0 || (st.st_mode & S_IXOTH) != 0;
}
