/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/file_rights.h"

#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An id that is none: the call changes nothing and returns the one there is (setfsuid(2)). */
#define ASK ((uid_t)-1)

bool nj_file_rights_of_others(void)
{
    if (geteuid() != 0)
        return true;
    /* glibc's setgroups() would do it to all threads. */
    if (syscall(SYS_setgroups, 0, NULL) != 0)
        return false;
    setfsgid(NJ_NOBODY);
    setfsuid(NJ_NOBODY); /* takes CAP_DAC_OVERRIDE and its like from the thread (capabilities(7)) */
    return (unsigned)setfsuid(ASK) == NJ_NOBODY && (unsigned)setfsgid(ASK) == NJ_NOBODY;
}

bool nj_file_rights_reach(const char *folder)
{
    struct stat st;
    return geteuid() != 0 || stat(folder, &st) != 0 || (st.st_mode & S_IXOTH) != 0;
}
