/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: memory lock limit and file permissions of the user that will run the server. */
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/set_error.h"
#include "base/units.h"
#include "doctor/doctor.h"

#define PATH_BYTES      1024u
#define NAME_WORD_BYTES NJ_SHELL_WORD_BYTES(sizeof(((struct nj_account *)0)->name))

/* --- the user -------------------------------------------------------------------------------- */

/* Opens a file below the root, as the C library reads the host's. */
static FILE *open_below(const struct nj_doctor *d, const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s%s", d->root, name);
    return fopen(path, "re");
}

static void read_groups(struct nj_doctor *d, gid_t first)
{
    struct nj_account *a = &d->account;
    FILE *f = open_below(d, "/etc/group");

    a->group[0] = first;
    a->n_groups = 1;
    for (struct group *g; f && (g = fgetgrent(f));)
        for (char **m = g->gr_mem; *m; m++)
            if (strcmp(*m, a->name) == 0 && a->n_groups < NJ_DOCTOR_GROUPS_MAX)
                a->group[a->n_groups++] = g->gr_gid;
    if (f)
        fclose(f);
}

static bool is_member(const struct nj_account *a, gid_t gid)
{
    for (int i = 0; i < a->n_groups; i++)
        if (a->group[i] == gid)
            return true;
    return false;
}

static bool is_member_by_name(const struct nj_doctor *d, const char *name)
{
    FILE *f = *d->root ? open_below(d, "/etc/group") : NULL;
    const struct group *g = *d->root ? NULL : getgrnam(name);

    while (f && (g = fgetgrent(f)) && strcmp(g->gr_name, name) != 0)
        ;
    bool is = g && is_member(&d->account, g->gr_gid);
    if (f)
        fclose(f);
    return is;
}

static bool set_account(struct nj_doctor *d, const struct passwd *p)
{
    struct nj_account *a = &d->account;

    if (!p)
        return false;
    snprintf(a->name, sizeof a->name, "%s", p->pw_name);
    a->uid = p->pw_uid;
    a->is_current_user = a->uid == geteuid();
    a->n_groups = NJ_DOCTOR_GROUPS_MAX;
    if (*d->root)
        return true;
    if (getgrouplist(a->name, p->pw_gid, a->group, &a->n_groups) < 0)
        a->n_groups = NJ_DOCTOR_GROUPS_MAX; /* the first ones are stored */
    return true;
}

static bool find_below(struct nj_doctor *d, const char *name)
{
    FILE *f = open_below(d, "/etc/passwd");
    bool found = false;

    for (struct passwd *p; f && !found && (p = fgetpwent(f));) {
        found = name ? strcmp(p->pw_name, name) == 0 : p->pw_uid == geteuid();
        if (found && set_account(d, p))
            read_groups(d, p->pw_gid);
    }
    if (f)
        fclose(f);
    return found;
}

bool nj__facts_user(struct nj_doctor *d, const char *name, char *why, size_t why_bytes)
{
    bool found = *d->root ? find_below(d, name)
                          : set_account(d, name ? getpwnam(name) : getpwuid(geteuid()));

    if (found)
        return true;
    if (name) {
        nj_set_error(why, why_bytes, "--user %s: there is no such user", name);
        return false;
    }
    d->account.uid = geteuid(); /* a uid without a name, as in containers */
    d->account.is_current_user = true;
    d->account.group[0] = getegid();
    d->account.n_groups = 1;
    snprintf(d->account.name, sizeof d->account.name, "%u", (unsigned)geteuid());
    return true;
}

/* --- memory lock limit ------------------------------------------------------------------------ */

struct limit {
    int rank;       /* specificity: 3 user, 2 group, 1 everybody; 0: not set */
    uint64_t bytes; /* UINT64_MAX: unlimited */
    char where[128];
};

struct memlock {
    const struct nj_doctor *d;
    struct limit soft, hard;
};

/* Parses "Max locked memory         8388608              8388608              bytes". */
static void parse_limit(void *ctx, const char *path, char *line)
{
    struct memlock *m = ctx;
    char soft[32];

    if (sscanf(line, "Max locked memory %31s", soft) != 1)
        return;
    m->soft.rank = 1;
    m->soft.bytes = strcmp(soft, "unlimited") == 0 ? UINT64_MAX : strtoull(soft, NULL, 10);
    snprintf(m->soft.where, sizeof m->soft.where, "of this process");
}

/* Parses ranges "1000:2000", "1000:" (from 1000), ":1000" (only 1000). False: not a range. */
static bool read_range(const char *text, uint64_t *min, uint64_t *max)
{
    const char *colon = strchr(text, ':');

    if (!colon || !text[1] || text[strspn(text, "0123456789:")] || strchr(colon + 1, ':'))
        return false;
    *max = colon[1] ? strtoull(colon + 1, NULL, 10) : UINT32_MAX;
    *min = colon > text ? strtoull(text, NULL, 10) : *max;
    return true;
}

/* limits.conf(5): of a range only the first group counts. */
static bool is_of_groups(const struct nj_doctor *d, const char *domain)
{
    uint64_t min, max;

    if (!read_range(domain, &min, &max))
        return is_member_by_name(d, domain);
    if (*domain == ':')
        return is_member(&d->account, (gid_t)max);
    return d->account.group[0] >= min && d->account.group[0] <= max;
}

/* Specificity of a line for this domain; 0: it does not apply. limits.conf(5). */
static int rank_of(const struct nj_doctor *d, const char *domain)
{
    const struct nj_account *a = &d->account;
    uint64_t min, max;

    if (read_range(domain, &min, &max))
        return a->uid >= min && a->uid <= max ? 3 : 0;
    if (strcmp(domain, a->name) == 0)
        return 3;
    if (*domain == '@')
        return is_of_groups(d, domain + 1) ? 2 : 0;
    return strcmp(domain, "*") == 0 && a->uid != 0;
}

static void set_limit(struct limit *l, int rank, const char *value, const char *path)
{
    bool unlimited = strcmp(value, "unlimited") == 0 || strcmp(value, "infinity") == 0 ||
                     strcmp(value, "-1") == 0;

    if (rank == 0 || rank < l->rank)
        return;
    l->rank = rank;
    l->bytes = unlimited ? UINT64_MAX : strtoull(value, NULL, 10) * 1024;
    snprintf(l->where, sizeof l->where, "by %.100s", path);
}

/* Parses "nj - memlock unlimited", or KiB. A later line wins unless it is less specific. */
static void parse_pam_limit(void *ctx, const char *path, char *line)
{
    struct memlock *m = ctx;
    char domain[64], type[16], item[32], value[32];

    if (sscanf(line, "%63s %15s %31s %31s", domain, type, item, value) != 4 || *domain == '#' ||
        strcmp(item, "memlock") != 0)
        return;
    if (strcmp(type, "-") == 0 || strcmp(type, "soft") == 0)
        set_limit(&m->soft, rank_of(m->d, domain), value, path);
    if (strcmp(type, "-") == 0 || strcmp(type, "hard") == 0)
        set_limit(&m->hard, rank_of(m->d, domain), value, path);
}

/* The limit that applies to this process. Its rank is 0 if it is not known. */
static struct limit read_memlock(const struct nj_doctor *d)
{
    struct memlock m = {.d = d};

    if (d->account.is_current_user) {
        nj__host_lines(d, parse_limit, &m, "/proc/self/limits");
    } else {
        nj__host_lines(d, parse_pam_limit, &m, "/etc/security/limits.conf");
        nj__host_lines_below(d, parse_pam_limit, &m, "/etc/security/limits.d", ".conf");
    }
    bool capped = m.soft.rank > 0 && m.hard.rank > 0 && m.hard.bytes < m.soft.bytes;
    return capped ? m.hard : m.soft;
}

static void advise_memlock(struct nj_doctor *d, const struct limit *is)
{
    static const char folder[] = "by /etc/security/limits.d/";
    char word[NAME_WORD_BYTES];

    nj__advise(d, "echo %s - memlock unlimited | %stee /etc/security/limits.d/nightjar.conf\n",
               nj__shell_word(word, sizeof word, d->account.name), d->sudo);
    if (is->rank == 3 && strncmp(is->where, folder, sizeof folder - 1) == 0 &&
        strcmp(is->where + sizeof folder - 1, "nightjar.conf") > 0)
        nj__advise(d, "# remove the line from %s, which is read later\n", is->where + 3);
    nj__advise(d, "# takes effect at the next login; a systemd unit needs "
                  "LimitMEMLOCK=infinity in its [Service] instead\n");
    if (d->account.is_current_user)
        nj__advise(d, "# for this shell:\n%sprlimit --pid $$ --memlock=unlimited\n", d->sudo);
}

static void check_memlock(struct nj_doctor *d)
{
    struct limit m = read_memlock(d);
    char is[24], need[24];

    nj_format_bytes(m.bytes, is, sizeof is);
    nj_format_bytes(d->huge_bytes, need, sizeof need);
    nj__begin_finding(d, "memlock");
    if (d->account.uid == 0)
        nj__add_text(d, "root: no limit for what vfio locks");
    else if (m.rank > 0 && m.bytes == UINT64_MAX)
        nj__add_text(d, "unlimited for %s %s", d->account.name, m.where);
    else if (m.rank > 0 && d->huge_bytes > 0 && m.bytes >= d->huge_bytes)
        nj__add_text(d, "%s for %s %s, enough for all huge pages", is, d->account.name, m.where);
    else {
        nj__set_verdict(d, d->needs_vfio ? NJ_VERDICT_ERROR : NJ_VERDICT_OK,
                        "%s for %s%s%s; vfio locks all memory that it maps, up to %s%s",
                        m.rank > 0 ? is : "not set", d->account.name, *m.where ? " " : "", m.where,
                        d->huge_bytes ? need : "all huge pages",
                        d->needs_vfio ? "" : " (not used on this host)");
        if (d->needs_vfio)
            advise_memlock(d, &m);
    }
}

/* --- permissions ----------------------------------------------------------------------------- */

/* ACLs are only checked for the user of this process. */
static bool may(const struct nj_doctor *d, const char *path, const struct stat *st, int want)
{
    const struct nj_account *a = &d->account;

    if (a->uid == 0)
        return true;
    if (a->is_current_user && !*d->root)
        return faccessat(AT_FDCWD, path, want, AT_EACCESS) == 0;
    int shift = st->st_uid == a->uid ? 6 : is_member(a, st->st_gid) ? 3 : 0;
    return ((int)(st->st_mode >> shift) & want) == want;
}

/* May the user read and write it, and search it if it is a folder? */
static bool may_read_write(const struct nj_doctor *d, const char *path, const struct stat *st)
{
    return may(d, path, st, S_ISDIR(st->st_mode) ? R_OK | W_OK | X_OK : R_OK | W_OK);
}

static bool find(const struct nj_doctor *d, const char *path, char below[PATH_BYTES],
                 struct stat *st)
{
    return snprintf(below, PATH_BYTES, "%s%s", d->root, path) < (int)PATH_BYTES &&
           stat(below, st) == 0;
}

/* The first folder of the path that the user may not search. It makes later permissions
 * irrelevant. */
static bool find_unsearchable(const struct nj_doctor *d, const char *path, char folder[PATH_BYTES])
{
    char below[PATH_BYTES];
    struct stat st;

    for (const char *p = path; (p = strchr(p + 1, '/'));) {
        snprintf(folder, PATH_BYTES, "%.*s", (int)(p - path), path);
        if (find(d, folder, below, &st) && !may(d, below, &st, X_OK))
            return true;
    }
    return false;
}

static void report_closed(struct nj_doctor *d, const char *path, const char *folder,
                          enum nj_verdict bad)
{
    char word[NJ_SHELL_WORD_BYTES(PATH_BYTES)];

    nj__begin_finding(d, "permission%s", path);
    nj__set_verdict(d, bad, "%s may not search %s", d->account.name, folder);
    nj__advise(d, "%schmod a+x %s\n", d->sudo, nj__shell_word(word, sizeof word, folder));
}

static void vfio_path(const struct nj_doctor *d, const struct nj_nic *nic, char *path, size_t n)
{
    snprintf(path, n, "/dev/vfio/%s%lld", d->n_iommu_groups ? "" : "noiommu-",
             (long long)nic->group);
}

static bool is_usable(const struct nj_doctor *d, const struct nj_nic *nic)
{
    char path[64], below[PATH_BYTES], closed[PATH_BYTES];
    struct stat st;

    if (nic->state != NJ_NIC_READY)
        return false;
    if (nic->binding == NJ_BOUND_UIO || (nic->binding == NJ_BOUND_VFIO && d->n_iommu_groups == 0))
        return d->account.uid == 0;
    if (nic->binding != NJ_BOUND_VFIO)
        return true;
    vfio_path(d, nic, path, sizeof path);
    return find(d, path, below, &st) && may_read_write(d, below, &st) &&
           !find_unsearchable(d, path, closed);
}

void nj__facts_usable(struct nj_doctor *d)
{
    for (uint32_t i = 0; i < d->n_nics; i++) {
        bool usable = is_usable(d, &d->nic[i]);
        d->n_usable += usable;
        if (usable && d->nic[i].binding != NJ_BOUND_VFIO)
            d->needs_vfio = false;
    }
}

/* A problem of one NIC is a warning if another NIC is usable. */
static enum nj_verdict severity_for(const struct nj_doctor *d, const struct nj_nic *nic)
{
    bool other = d->n_usable > 0 || (d->n_ready > 0 && nic->state != NJ_NIC_READY);

    return other ? NJ_VERDICT_WARNING : NJ_VERDICT_ERROR;
}

/* `path` is relative to the root. `for_boot`: a shell line that makes the mode permanent. Returns
 * whether the file exists. */
static bool check_path(struct nj_doctor *d, const char *path, enum nj_verdict bad,
                       const char *command, const char *for_boot)
{
    char below[PATH_BYTES], word[NJ_SHELL_WORD_BYTES(PATH_BYTES)];
    struct stat st;

    if (find_unsearchable(d, path, below)) {
        report_closed(d, path, below, bad);
        return true;
    }
    if (!find(d, path, below, &st))
        return false;
    nj__begin_finding(d, "permission%s", path);
    if (may_read_write(d, below, &st)) {
        nj__add_text(d, "%s may read and write", d->account.name);
    } else {
        nj__set_verdict(d, bad, "%s may not read and write (mode %04o, uid %u, gid %u)",
                        d->account.name, (unsigned)st.st_mode & 07777, (unsigned)st.st_uid,
                        (unsigned)st.st_gid);
        nj__advise(d, "%s%s %s\n", d->sudo, command, nj__shell_word(word, sizeof word, path));
        if (*for_boot)
            nj__advise(d, "%s\n", for_boot);
    }
    return true;
}

static void check_vfio_group(struct nj_doctor *d, const struct nj_nic *nic, const char *chown)
{
    char path[64], rule[256];
    enum nj_verdict bad = severity_for(d, nic);
    bool has_file = d->n_iommu_groups > 0 || d->noiommu;

    if (nic->group < 0 || !has_file)
        return;
    vfio_path(d, nic, path, sizeof path);
    snprintf(rule, sizeof rule,
             "echo 'SUBSYSTEM==\"vfio\", KERNEL==\"%s\", OWNER=\"%s\"' | %stee -a "
             "/etc/udev/rules.d/60-nightjar.rules",
             strrchr(path, '/') + 1, d->account.name, d->sudo);
    if (check_path(d, path, bad, chown, rule))
        return;
    nj__begin_finding(d, "permission%s", path);
    nj__set_verdict(d, bad,
                    "missing, although %s is bound to vfio-pci: a container needs it from its host",
                    nic->address);
}

static void check_uio(struct nj_doctor *d, const struct nj_nic *nic, const char *chown)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/bus/pci/devices/%s/uio", nic->address);
    char path[64];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "/dev/%.40s", names[i]->d_name);
        check_path(d, path, severity_for(d, nic), chown, "");
    }
    nj__host_names_free(names, n);
}

/* Without an IOMMU the NIC needs physical addresses, which only root can read. */
static void check_root(struct nj_doctor *d)
{
    bool physical =
        d->n_ready == 0 && (d->bind_method == NJ_BIND_UIO || d->bind_method == NJ_BIND_NOIOMMU);

    for (uint32_t i = 0; i < d->n_nics; i++)
        physical |= d->nic[i].state == NJ_NIC_READY &&
                    (d->nic[i].binding == NJ_BOUND_UIO ||
                     (d->nic[i].binding == NJ_BOUND_VFIO && d->n_iommu_groups == 0));
    nj__begin_finding(d, "user");
    nj__add_text(d, "%s", d->account.name);
    if (physical && d->account.uid != 0) {
        nj__set_verdict(d, d->n_usable > 0 ? NJ_VERDICT_WARNING : NJ_VERDICT_ERROR,
                        ": without an IOMMU only root can use a NIC");
        nj__advise(d, "# run nightjar as root, or switch the IOMMU on and use vfio-pci\n");
    }
}

static void check_tun(struct nj_doctor *d)
{

    if (check_path(d, "/dev/net/tun", NJ_VERDICT_WARNING, "chmod 666", ""))
        return;
    nj__begin_finding(d, "permission/dev/net/tun");
    nj__set_verdict(d, NJ_VERDICT_WARNING, "missing: a tap in place of a NIC needs it (./dev run)");
    nj__advise(d, "%smodprobe tun\n", d->sudo);
}

void nj__check_user(struct nj_doctor *d)
{
    char chown[NAME_WORD_BYTES + 8], again[2048], word[NAME_WORD_BYTES + 2048];

    snprintf(chown, sizeof chown, "chown %s", nj__shell_word(word, sizeof word, d->account.name));
    check_root(d);
    check_memlock(d);
    for (uint32_t i = 0; i < d->n_mounts; i++) {
        if (!d->mount[i].has_pages && d->n_mounts > 1)
            continue;
        snprintf(again, sizeof again, "# at each boot; a unit of systemd: ExecStartPre=+%s %s",
                 chown, nj__shell_word(word, sizeof word, d->mount[i].path));
        check_path(d, d->mount[i].path, NJ_VERDICT_ERROR, chown, again);
    }
    if (d->needs_vfio)
        check_path(d, "/dev/vfio/vfio", NJ_VERDICT_ERROR, "chmod 666", "");
    for (uint32_t i = 0; i < d->n_nics; i++) {
        if (d->nic[i].binding == NJ_BOUND_VFIO)
            check_vfio_group(d, &d->nic[i], chown);
        else if (d->nic[i].binding == NJ_BOUND_UIO)
            check_uio(d, &d->nic[i], chown);
    }
    check_tun(d);
}
