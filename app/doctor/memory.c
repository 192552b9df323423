/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: huge pages now and at boot, their mounts (hugetlbfs), and transparent huge
 * pages. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/units.h"
#include "doctor/doctor.h"

#define KIB              ((uint64_t)1024)
#define MIB              (1024 * KIB)
#define LCORE_BYTES      (NJ_LCORE_EAL_MIB * MIB)
#define WANTED_BYTES     (1024 * MIB) /* recommended if available: for up to 5 lcores */
#define SIZES_MAX        8u
#define SYSCTL_FILES_MAX 256u

/* --- state of memory ------------------------------------------------------------------------- */

struct pages {
    uint64_t bytes;    /* of one page */
    int64_t all, free; /* number of pages */
};

struct node {
    int64_t id;    /* -1: a kernel without NUMA */
    char path[64]; /* "": use /proc/meminfo */
    uint32_t n_sizes;
    struct pages size[SIZES_MAX];
    uint64_t all_bytes, free_bytes;
    bool is_wanted; /* a server allocates memory on it */
};

static void read_node(const struct nj_doctor *d, struct node *node)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "%s", node->path);

    for (uint32_t i = 0; i < n && node->n_sizes < SIZES_MAX; i++) {
        struct pages *p = &node->size[node->n_sizes];
        unsigned long long kib;
        const char *name = names[i]->d_name;
        if (sscanf(name, "hugepages-%llukB", &kib) != 1 ||
            !nj__host_number(d, &p->all, "%s/%s/nr_hugepages", node->path, name) ||
            !nj__host_number(d, &p->free, "%s/%s/free_hugepages", node->path, name))
            continue;
        p->bytes = kib * KIB;
        node->all_bytes += (uint64_t)p->all * p->bytes;
        node->free_bytes += (uint64_t)p->free * p->bytes;
        node->n_sizes++;
    }
    nj__host_names_free(names, n);
}

struct meminfo {
    uint64_t available, page; /* bytes; UINT64_MAX: not known */
    int64_t all, free;        /* pages; -1: not known */
};

static void parse_meminfo(void *ctx, const char *path, char *line)
{
    struct meminfo *m = ctx;
    unsigned long long kib;

    if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
        m->available = kib * KIB;
    else if (sscanf(line, "Hugepagesize: %llu kB", &kib) == 1 && kib > 0)
        m->page = kib * KIB;
    else if (sscanf(line, "HugePages_Total: %llu", &kib) == 1)
        m->all = (int64_t)kib;
    else if (sscanf(line, "HugePages_Free: %llu", &kib) == 1)
        m->free = (int64_t)kib;
}

static struct meminfo read_meminfo(const struct nj_doctor *d)
{
    struct meminfo m = {UINT64_MAX, 2 * MIB, -1, 0};

    nj__host_lines(d, parse_meminfo, &m, "/proc/meminfo");
    return m;
}

/* Default-size pages of the whole kernel. */
static void read_global_pages(const struct nj_doctor *d, struct node *node)
{
    struct meminfo m = read_meminfo(d);

    if (m.all < 0)
        return;
    node->path[0] = '\0';
    node->size[node->n_sizes++] = (struct pages){m.page, m.all, m.free};
    node->all_bytes = (uint64_t)m.all * m.page;
    node->free_bytes = (uint64_t)m.free * m.page;
}

/* Lcores are near the NIC and allocate on their own node. True: the node has a NIC. */
static bool is_near(const struct nj_doctor *d, const struct node *node)
{
    for (uint32_t i = 0; i < d->n_nics; i++) {
        const struct nj_nic *nic = &d->nic[i];
        if (nic->state != NJ_NIC_PROTECTED && nic->node >= 0 && nic->node == node->id &&
            (d->n_ready == 0 || nic->state == NJ_NIC_READY))
            return true;
    }
    return false;
}

/* If no NIC names a node with huge pages, the first node that can have them is wanted. */
static void mark_wanted(const struct nj_doctor *d, struct node *nodes, uint32_t n_nodes)
{
    struct node *first = NULL;
    bool any = false;

    for (uint32_t i = 0; i < n_nodes; i++) {
        nodes[i].is_wanted = nodes[i].n_sizes > 0 && is_near(d, &nodes[i]);
        any |= nodes[i].is_wanted;
        if (!first && nodes[i].n_sizes > 0)
            first = &nodes[i];
    }
    if (!any)
        (first ? first : nodes)->is_wanted = true;
}

/* The caller frees the result. */
static struct node *read_nodes(const struct nj_doctor *d, uint32_t *n_nodes)
{
    struct dirent **names;
    uint32_t n = nj__host_names(d, &names, "/sys/devices/system/node");
    struct node *nodes = calloc(n + 1, sizeof *nodes);

    bool any = false;

    *n_nodes = 0;
    for (uint32_t i = 0; nodes && i < n; i++) {
        unsigned id;
        if (sscanf(names[i]->d_name, "node%u", &id) != 1)
            continue;
        struct node *node = &nodes[(*n_nodes)++];
        node->id = id;
        snprintf(node->path, sizeof node->path, "/sys/devices/system/node/node%u/hugepages", id);
        read_node(d, node);
        any |= node->n_sizes > 0;
    }
    nj__host_names_free(names, n);
    if (nodes && !any) {
        *n_nodes = 1;
        nodes[0].id = -1;
        snprintf(nodes[0].path, sizeof nodes[0].path, "/sys/kernel/mm/hugepages");
        read_node(d, &nodes[0]);
        if (nodes[0].n_sizes == 0)
            read_global_pages(d, &nodes[0]);
    }
    if (nodes)
        mark_wanted(d, nodes, *n_nodes);
    return nodes;
}

/* Decodes "\040" to a space. Control characters stay encoded. */
static void decode_path(char *path)
{
    char *to = path;

    for (const char *from = path; *from; to++) {
        unsigned c;
        int n = 0;
        if (sscanf(from, "\\%3o%n", &c, &n) == 1 && n == 4 && c >= 0x20 && c < 0x7f) {
            *to = (char)c;
            from += n;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* "nodev /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0" */
static void parse_mount(void *ctx, const char *path, char *line)
{
    struct nj_doctor *d = ctx;
    struct nj_huge_mount *m = &d->mount[d->n_mounts];
    char options[256];

    if (d->n_mounts == NJ_DOCTOR_MOUNTS_MAX ||
        sscanf(line, "%*s %255s hugetlbfs %255s", m->path, options) != 2)
        return;
    decode_path(m->path);
    const char *size = strstr(options, "pagesize=");
    char *unit = NULL;
    m->page_bytes = size ? strtoull(size + 9, &unit, 10) : 0;
    if (unit)
        m->page_bytes *= *unit == 'G' ? 1024 * MIB : *unit == 'M' ? MIB : *unit == 'K' ? KIB : 1;
    d->n_mounts++;
}

/* Number of pages of that size on this node. */
static uint64_t pages_there(const struct node *node, uint64_t page_bytes)
{
    for (uint32_t i = 0; i < node->n_sizes; i++)
        if (node->size[i].bytes == page_bytes)
            return (uint64_t)node->size[i].all;
    return 0;
}

void nj__facts_memory(struct nj_doctor *d)
{
    uint64_t free_bytes = 0;
    uint32_t n;
    struct node *nodes = read_nodes(d, &n);

    nj__host_lines(d, parse_mount, d, "/proc/mounts");
    for (uint32_t i = 0; nodes && i < n; i++) {
        d->huge_bytes += nodes[i].all_bytes;
        free_bytes += nodes[i].free_bytes;
        for (uint32_t k = 0; k < d->n_mounts; k++)
            d->mount[k].has_pages |= pages_there(&nodes[i], d->mount[k].page_bytes) > 0;
    }
    d->huge_pages_in_use = d->huge_bytes >= LCORE_BYTES && free_bytes < LCORE_BYTES;
    free(nodes);
}

/* --- huge pages of the nodes ----------------------------------------------------------------- */

static uint64_t bytes_needed(const struct nj_doctor *d)
{
    return LCORE_BYTES * (d->lcores_given ? (uint64_t)CPU_COUNT(&d->lcores) : 1);
}

/* Parses "Node 0 MemFree: 1000 kB", and FilePages, which the kernel can drop. */
static void parse_node_meminfo(void *ctx, const char *path, char *line)
{
    unsigned long long kib;

    if (sscanf(line, "Node %*u MemFree: %llu kB", &kib) == 1 ||
        sscanf(line, "Node %*u FilePages: %llu kB", &kib) == 1)
        *(uint64_t *)ctx += kib * KIB;
}

/* Upper bound of bytes for further pages on the node. */
static uint64_t memory_left(const struct nj_doctor *d, const struct node *node)
{
    uint64_t all = read_meminfo(d).available, here = 0;

    if (!nj__host_lines(d, parse_node_meminfo, &here, "/sys/devices/system/node/node%lld/meminfo",
                        (long long)node->id))
        return all;
    return here < all ? here : all;
}

/* Recommended number of default-size pages for a node: the present ones plus those needed, and more
 * if memory is free. */
static uint64_t pages_wanted(const struct nj_doctor *d, const struct node *node, uint32_t n_nodes)
{
    struct meminfo m = read_meminfo(d);
    uint64_t there = pages_there(node, m.page), need = bytes_needed(d);
    uint64_t others = node->all_bytes - there * m.page; /* pages of other sizes */
    uint64_t left = memory_left(d, node) / 2, bytes = m.available / 2 / n_nodes;

    need = need > others ? need - others : 0;
    if (bytes > left)
        bytes = left;
    if (bytes > WANTED_BYTES)
        bytes = WANTED_BYTES;
    if (bytes < need)
        bytes = need;
    uint64_t pages = (bytes + m.page - 1) / m.page;
    return pages > there ? pages : there;
}

/* Can the node have the recommended number of pages? */
static bool pages_fit(const struct nj_doctor *d, const struct node *node, uint32_t n_nodes)
{
    uint64_t page = read_meminfo(d).page;
    uint64_t more = pages_wanted(d, node, n_nodes) - pages_there(node, page);

    return more * page <= memory_left(d, node);
}

/* Path of the file that sets the number of default-size pages. False: none. */
static bool nr_hugepages_path(const struct nj_doctor *d, const struct node *node, char *path,
                              size_t n)
{
    snprintf(path, n, "%s/hugepages-%llukB/nr_hugepages", node->path,
             (unsigned long long)(read_meminfo(d).page / KIB));
    if (*node->path && nj__host_exists(d, "%s", path))
        return true;
    snprintf(path, n, "/proc/sys/vm/nr_hugepages");
    return node->id < 0 && nj__host_exists(d, "%s", path);
}

static void advise_pages(struct nj_doctor *d, const struct node *node, uint32_t n_nodes)
{
    char path[128];

    if (!nr_hugepages_path(d, node, path, sizeof path)) {
        nj__advise(d, "# boot a kernel with huge pages (CONFIG_HUGETLBFS)\n" NJ_UNTESTED);
        return;
    }
    if (pages_fit(d, node, n_nodes)) {
        nj__advise(d, "echo %llu | %stee %s\n", (unsigned long long)pages_wanted(d, node, n_nodes),
                   d->sudo, path);
        return;
    }
    nj__add_text(d, ", and only %lluMiB of memory are available",
                 (unsigned long long)(memory_left(d, node) / MIB));
    nj__advise(d, "# free memory%s\n",
               bytes_needed(d) > LCORE_BYTES ? ", or give nightjar fewer lcores" : "");
}

static void describe_pages(struct nj_doctor *d, const struct node *node)
{
    char size[24];

    for (uint32_t i = 0; i < node->n_sizes; i++) {
        nj_format_bytes(node->size[i].bytes, size, sizeof size);
        nj__add_text(d, "%s%lld pages of %s, %lld free", i ? "; " : "",
                     (long long)node->size[i].all, size, (long long)node->size[i].free);
    }
    if (node->n_sizes == 0)
        nj__add_text(d, "the kernel has none");
}

static void check_node(struct nj_doctor *d, const struct node *node, uint32_t n_nodes)
{
    uint64_t need = bytes_needed(d);

    if (node->id < 0)
        nj__begin_finding(d, "hugepages");
    else
        nj__begin_finding(d, "hugepages/node%lld", (long long)node->id);
    describe_pages(d, node);
    if (node->is_wanted && node->all_bytes < need) {
        nj__set_verdict(d, d->huge_bytes < LCORE_BYTES ? NJ_VERDICT_ERROR : NJ_VERDICT_WARNING,
                        ": the EAL needs %lluMiB here", (unsigned long long)(need / MIB));
        advise_pages(d, node, n_nodes);
    } else if (node->is_wanted && node->free_bytes < need) {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        ": other processes use them; a server that starts needs %lluMiB",
                        (unsigned long long)(need / MIB));
        nj__advise(d,
                   "# which processes use them:\n%sgrep -ls '_Hugetlb: *[1-9]' "
                   "/proc/[0-9]*/smaps\n",
                   d->sudo);
    }
}

/* --- reservation at boot --------------------------------------------------------------------- */

struct at_boot {
    char where[256]; /* source of the setting; "": none */
    char zero[256];  /* the last file to set them, if it sets 0 */
};

static bool is_comment(const char *line)
{
    line += strspn(line, " \t");
    return *line == '#' || *line == ';';
}

/* Removes the number at the end of a line. -1: none. */
static int64_t number_at_end(char *line)
{
    size_t n = strlen(line);

    while (n > 0 && isspace((unsigned char)line[n - 1]))
        line[--n] = '\0';
    while (n > 0 && isdigit((unsigned char)line[n - 1]))
        n--;
    return line[n] ? strtoll(line + n, NULL, 10) : -1;
}

/* Parses "vm.nr_hugepages = 512" of sysctl.d; the last line wins, and may set 0. */
static void parse_sysctl(void *ctx, const char *path, char *line)
{
    struct at_boot *b = ctx;
    int64_t n = number_at_end(line);

    line += strspn(line, " \t");
    line += *line == '-'; /* '-': sysctl ignores failures of this line */
    if (n < 0 ||
        (strncmp(line, "vm.nr_hugepages", 15) != 0 && strncmp(line, "vm/nr_hugepages", 15) != 0))
        return;
    snprintf(b->where, sizeof b->where, "%s%.200s", n > 0 ? "by " : "", n > 0 ? path : "");
    snprintf(b->zero, sizeof b->zero, "%s", n > 0 ? "" : path);
}

/* Parses "w /sys/.../nr_hugepages - - - - 512" of tmpfiles.d, which is applied after sysctl.d. */
static void parse_tmpfile(void *ctx, const char *path, char *line)
{
    struct at_boot *b = ctx;

    if (number_at_end(line) > 0 && !is_comment(line) && strstr(line, "nr_hugepages"))
        snprintf(b->where, sizeof b->where, "by %.200s", path);
}

struct sysctl_file {
    const char *folder;
    char name[256];
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct sysctl_file *)a)->name, ((const struct sysctl_file *)b)->name);
}

/* A file overrides files of the same name in later folders. */
static uint32_t add_sysctl_files(const struct nj_doctor *d, struct sysctl_file *files, uint32_t n,
                                 const char *folder)
{
    struct dirent **names;
    uint32_t n_names = nj__host_names(d, &names, "%s", folder), n_before = n;

    for (uint32_t i = 0; i < n_names && n < SYSCTL_FILES_MAX; i++) {
        const char *name = names[i]->d_name, *end = strrchr(name, '.');
        bool hidden = !end || strcmp(end, ".conf") != 0;
        for (uint32_t k = 0; k < n_before; k++)
            hidden |= strcmp(files[k].name, name) == 0;
        if (hidden)
            continue;
        files[n].folder = folder;
        snprintf(files[n++].name, sizeof files->name, "%s", name);
    }
    nj__host_names_free(names, n_names);
    return n;
}

/* sysctl.d(5): files are read in the order of their names, in whichever folder. */
static void read_sysctl(const struct nj_doctor *d, struct at_boot *b)
{
    static const char *const folders[] = {"/etc/sysctl.d", "/run/sysctl.d",
                                          "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"};
    struct sysctl_file *files = calloc(SYSCTL_FILES_MAX, sizeof *files);
    uint32_t n = 0;

    for (size_t i = 0; files && i < NJ_ARRAY_LEN(folders); i++)
        n = add_sysctl_files(d, files, n, folders[i]);
    if (n > 0)
        qsort(files, n, sizeof *files, by_name);
    for (uint32_t i = 0; i < n; i++)
        nj__host_lines(d, parse_sysctl, b, "%s/%s", files[i].folder, files[i].name);
    nj__host_lines(d, parse_sysctl, b, "/etc/sysctl.conf");
    free(files);
}

/* Parses "512", or "0:512,1:0" for nodes. */
static bool is_nonzero_count(const char *count)
{
    for (const char *end; *count; count = *end == ',' ? end + 1 : end) {
        end = count + strspn(count, "0123456789:");
        const char *colon = memchr(count, ':', (size_t)(end - count));
        if (strtoull(colon ? colon + 1 : count, NULL, 10) > 0)
            return true;
        if (*end != ',')
            return false;
    }
    return false;
}

/* The count of huge pages on a kernel command line: of 2 MiB pages, or else of another size. False:
 * none are reserved. */
static bool find_count(char *line, char *count, size_t n)
{
    bool is_2m = true, found = false;
    char *save = NULL;

    for (char *w = strtok_r(line, " \t\"'", &save); w; w = strtok_r(NULL, " \t\"'", &save)) {
        if (strncmp(w, "hugepagesz=", 11) == 0)
            is_2m = strcmp(w + 11, "2M") == 0;
        else if (strncmp(w, "hugepages=", 10) == 0 && is_nonzero_count(w + 10) &&
                 (is_2m || !found)) {
            found = true;
            snprintf(count, n, "%s", w + 10);
        }
    }
    return found;
}

static void parse_cmdline(void *ctx, const char *path, char *line)
{
    struct at_boot *b = ctx;
    char count[64];

    if (find_count(line, count, sizeof count))
        snprintf(b->where, sizeof b->where, "by the kernel's command line (hugepages=%s)", count);
}

static void parse_grub(void *ctx, const char *path, char *line)
{
    struct at_boot *b = ctx;
    char count[64];

    if (strncmp(line, "GRUB_CMDLINE_LINUX", 18) == 0 && find_count(line, count, sizeof count))
        snprintf(b->where, sizeof b->where, "by %.200s, from the next boot with it on", path);
}

/* sysctl spreads pages evenly over the nodes. */
static void advise_boot(struct nj_doctor *d, const struct node *nodes, uint32_t n_nodes,
                        const char *zero)
{
    static const char own[] = "80-nightjar.conf";
    const char *name = strrchr(zero, '/');
    uint64_t most = 0;

    for (uint32_t i = 0; i < n_nodes; i++) {
        uint64_t pages = pages_wanted(d, &nodes[i], n_nodes);
        if (nodes[i].is_wanted && !pages_fit(d, &nodes[i], n_nodes))
            return; /* the finding of the node reports it */
        if (pages > most)
            most = pages;
    }
    nj__advise(d, "echo vm.nr_hugepages=%llu | %stee /etc/sysctl.d/%s\n",
               (unsigned long long)(most * n_nodes), d->sudo, own);
    if (name && strcmp(name + 1, own) > 0)
        nj__advise(d, "# %s sets them to 0 after that: remove its line\n", zero);
}

static void check_boot(struct nj_doctor *d, const struct node *nodes, uint32_t n_nodes)
{
    struct at_boot b = {"", ""};

    nj__host_lines(d, parse_grub, &b, "/etc/default/grub");
    nj__host_lines_below(d, parse_grub, &b, "/etc/default/grub.d", ".cfg");
    nj__host_lines(d, parse_cmdline, &b, "/proc/cmdline");
    read_sysctl(d, &b);
    nj__host_lines_below(d, parse_tmpfile, &b, "/etc/tmpfiles.d", ".conf");
    nj__host_lines_below(d, parse_tmpfile, &b, "/run/tmpfiles.d", ".conf");
    nj__begin_finding(d, "hugepages/boot");
    if (*b.where) {
        nj__add_text(d, "reserved %s", b.where);
    } else {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "not reserved at boot: after a reboot there are none");
        advise_boot(d, nodes, n_nodes, b.zero);
    }
}

/* --- mounts ---------------------------------------------------------------------------------- */

static bool is_mounted(const struct nj_doctor *d, uint64_t page_bytes)
{
    for (uint32_t i = 0; i < d->n_mounts; i++)
        if (d->mount[i].page_bytes == page_bytes)
            return true;
    return false;
}

/* The size of existing pages without a mount; 0: none. */
static uint64_t not_mounted(const struct nj_doctor *d, const struct node *nodes, uint32_t n_nodes)
{
    for (uint32_t i = 0; i < n_nodes; i++)
        for (uint32_t k = 0; k < nodes[i].n_sizes; k++)
            if (nodes[i].size[k].all > 0 && !is_mounted(d, nodes[i].size[k].bytes))
                return nodes[i].size[k].bytes;
    return 0;
}

static void check_mounts(struct nj_doctor *d, const struct node *nodes, uint32_t n_nodes)
{
    uint64_t missing = not_mounted(d, nodes, n_nodes), usual = read_meminfo(d).page;
    char size[24];

    if (d->n_mounts == 0 && missing == 0)
        missing = usual;
    nj__begin_finding(d, "hugetlbfs");
    for (uint32_t i = 0; i < d->n_mounts; i++) {
        nj_format_bytes(d->mount[i].page_bytes, size, sizeof size);
        nj__add_text(d, "%s%s (%s)", i ? ", " : "", d->mount[i].path, size);
    }
    if (missing > 0) {
        char folder[64] = "/dev/hugepages";
        if (missing != usual)
            snprintf(folder, sizeof folder, "/dev/hugepages-%lluM",
                     (unsigned long long)(missing / MIB));
        nj_format_bytes(missing, size, sizeof size);
        nj__set_verdict(d, d->n_mounts ? NJ_VERDICT_WARNING : NJ_VERDICT_ERROR,
                        "%snot mounted for pages of %s", d->n_mounts ? "; " : "", size);
        nj__advise(d, "%smkdir -p %s\n", d->sudo, folder);
        nj__advise(d, "%smount -t hugetlbfs -o pagesize=%lluK nodev %s\n", d->sudo,
                   (unsigned long long)(missing / KIB), folder);
    }
}

/* --- transparent huge pages, for memory outside the EAL --------------------------------------- */

static void check_transparent(struct nj_doctor *d)
{
    static const char *const path = "/sys/kernel/mm/transparent_hugepage/enabled";
    char text[64];

    nj__begin_finding(d, "transparent-hugepages");
    if (!nj__host_line(d, text, sizeof text, "%s", path))
        nj__add_text(d, "the kernel has none");
    else if (!strstr(text, "[never]"))
        nj__add_text(d, "%s", text);
    else {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "%s: memory of connections and files is on small pages", text);
        nj__advise(d, "echo madvise | %stee %s\n", d->sudo, path);
    }
}

void nj__check_memory(struct nj_doctor *d)
{
    uint32_t n = 0;
    struct node *nodes = read_nodes(d, &n);

    for (uint32_t i = 0; nodes && i < n; i++)
        check_node(d, &nodes[i], n);
    if (nodes) {
        check_boot(d, nodes, n);
        check_mounts(d, nodes, n);
    }
    free(nodes);
    check_transparent(d);
}
