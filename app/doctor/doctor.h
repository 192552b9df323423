/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nightjar doctor: checks whether this host is ready for a NIC, from files of the kernel and of
 * /etc. Changes nothing and opens neither the EAL nor a device.
 *
 * First gathers all facts (struct nj_doctor), then each check prints its findings. Every path is
 * read below `root`, which is "" or a folder of a test. One thread.
 */
#pragma once

#include <dirent.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "topo/pci_driver.h"
#include "topo/hwloc_topology.h"

/* --- findings ------------------------------------------------------------------------------- */

enum nj_verdict {
    NJ_VERDICT_OK,
    NJ_VERDICT_WARNING, /* a server can start, with reduced performance or safety; or huge pages
                            exist, but too few are free or on the node of the NIC */
    NJ_VERDICT_ERROR,   /* a server does not start on a NIC */
    NJ_N_VERDICTS
};

struct nj_text {
    size_t n;
    bool cut; /* text was dropped */
    char p[4096];
};

struct nj_finding {
    enum nj_verdict verdict;
    char id[96];           /* the subject, e.g. "hugepages/node0" */
    struct nj_text what;   /* one line */
    struct nj_text advice; /* lines of shell, each a command or a comment (#), each with its '\n' */
};

/* --- facts ---------------------------------------------------------------------------------- */

enum nj_module { NJ_MODULE_NONE, NJ_MODULE_AVAILABLE, NJ_MODULE_LOADED };

/* How to bind a NIC for DPDK on this host. */
enum nj_bind_method { NJ_BIND_NONE, NJ_BIND_VFIO, NJ_BIND_NOIOMMU, NJ_BIND_UIO };

enum nj_nic_state {
    NJ_NIC_PROTECTED,  /* carries the default route: must not be bound */
    NJ_NIC_READY,      /* DPDK can use it */
    NJ_NIC_BINDABLE,   /* can be bound for DPDK */
    NJ_NIC_UNBINDABLE, /* cannot be bound: another device of its IOMMU group must stay with the
                          kernel */
    NJ_NIC_MISBOUND,   /* is bound for DPDK, which cannot use it with that driver */
};

struct nj_nic {
    char address[24];             /* "0000:03:00.0" */
    unsigned vendor, device;      /* PCI IDs */
    char name[160];               /* from pci.ids, or "" */
    char driver[32];              /* kernel driver that it is bound to, or "" */
    char interface[IF_NAMESIZE];  /* the first one, or "" */
    char route_of[IF_NAMESIZE];   /* interface with the route; may be stacked on the NIC's */
    bool has_default, has_routes; /* a kernel route uses one of its interfaces */
    bool is_suspect;              /* has_default is assumed: the NIC of the route is not known */
    bool has_uverbs;              /* needed by a bifurcated driver besides the kernel driver */
    int64_t node, group;          /* NUMA node, IOMMU group; -1: none */
    int64_t mbit_per_s;           /* of the link; -1: not known */
    bool has_link, any_link;      /* of the first interface; of any interface */
    enum nj_pci_binding binding;
    enum nj_nic_state state;
    char why[128]; /* when STUCK or UNFIT */
};

#define NJ_DOCTOR_MOUNTS_MAX 8
struct nj_huge_mount {
    char path[256];
    uint64_t page_bytes;
    bool has_pages; /* there are pages of that size */
};

#define NJ_DOCTOR_GROUPS_MAX 64
struct nj_account {
    char name[64];
    uid_t uid;
    int n_groups;
    gid_t group[NJ_DOCTOR_GROUPS_MAX];
    bool is_current_user; /* the current user */
};

struct nj_doctor {
    const char *root;
    const char *sudo; /* "sudo ", or "" if the shell is root's */
    FILE *out;
    bool json;
    uint32_t n_printed[NJ_N_VERDICTS];
    struct nj_finding finding; /* current finding; empty id: none */

    char release[128]; /* kernel release */
    struct nj_account account;

    cpu_set_t online, lcores;
    bool lcores_given;

    uint32_t n_iommu_groups; /* groups of an IOMMU, without those of vfio's no-IOMMU mode */
    bool has_dmar, has_ivrs; /* there is an ACPI table of an Intel or AMD IOMMU */
    bool remapped;           /* interrupt remapping is on */
    bool unsafe_allowed;     /* vfio works without interrupt remapping */
    bool type1_loaded;       /* vfio_iommu_type1, the module of that parameter */
    bool noiommu;            /* vfio's mode without an IOMMU is on */
    bool noiommu_known;      /* has_noiommu is known */
    bool has_noiommu;
    enum nj_module vfio_pci, uio;
    enum nj_bind_method bind_method;

    bool no_routes; /* the routes cannot be read */
    /* Has a default route whose NIC is not known; or NULL. */
    const struct nj_route_if *route_without_nic;
    struct nj_route_if *route; /* interfaces with routes of the kernel */
    uint32_t n_routes;

    struct nj_nic *nic;
    uint32_t n_nics, n_ready, n_free;
    uint32_t n_usable; /* ready NICs that the user can use */
    bool needs_vfio;   /* the usable NIC needs, or would need, vfio with an IOMMU */

    uint32_t n_mounts; /* of hugetlbfs */
    struct nj_huge_mount mount[NJ_DOCTOR_MOUNTS_MAX];
    uint64_t huge_bytes;    /* all huge pages of the host */
    bool huge_pages_in_use; /* enough in total for a server, too few of them free */
};

/* Options. Strings belong to the caller. */
struct nj_doctor_config {
    const char *user;   /* user that will run the server; NULL: the user of this process */
    const char *lcores; /* CPUs of the lcores, as "2-5,8"; NULL: the isolated CPUs, or one of each
                           core but the first */
    const char *root; /* directory with sys, proc, etc to read instead of the host's; NULL: none */
    bool json;
};

/* Exit statuses; 0 means no errors, possibly warnings. */
#define NJ_DOCTOR_FAILED 1 /* an error prevents a start on a NIC, or doctor itself failed */
#define NJ_DOCTOR_USAGE  2 /* invalid arguments */

/* The subcommand: argv[0] is "doctor". Returns the exit status. */
int nj_doctor_main(int argc, char **argv);

/* Prints all findings on `out`. Returns the exit status, with the reason in `why` when no finding
 * was printed or `out` cannot be written. */
int nj__doctor_run(const struct nj_doctor_config *config, FILE *out, char *why, size_t why_bytes);

/* tell.c */
/* Begin a finding with verdict "ok". Prints the previous one. */
void nj__begin_finding(struct nj_doctor *d, const char *id_fmt, ...) NJ_PRINTF(2, 3);
/* Print the current finding. */
void nj__print_finding(struct nj_doctor *d);
/* Append to the text, append with a verdict, append to the advice. Text that does not fit is
 * dropped as a whole. */
void nj__add_text(struct nj_doctor *d, const char *fmt, ...) NJ_PRINTF(2, 3);
void nj__set_verdict(struct nj_doctor *d, enum nj_verdict verdict, const char *fmt, ...)
    NJ_PRINTF(3, 4);
void nj__advise(struct nj_doctor *d, const char *fmt, ...) NJ_PRINTF(2, 3);
/* Quote a name as one shell word. Returns `word`. */
#define NJ_SHELL_WORD_BYTES(n) (4 * (n) + 3)
const char *nj__shell_word(char *word, size_t n, const char *name);
/* Marks commands that were not tested on such a host. */
#define NJ_UNTESTED "# (untested)\n"
/* Advise adding words to the kernel's command line. `name`: part of a file name. */
void nj__advise_cmdline(struct nj_doctor *d, const char *name, const char *words_more);

/* --- files, files.c ------------------------------------------------------------------ */

/* Paths are formatted and read below the root. Unreadable files count as missing. */

bool nj__host_exists(const struct nj_doctor *d, const char *fmt, ...) NJ_PRINTF(2, 3);
/* A file of one line, without its end. */
bool nj__host_line(const struct nj_doctor *d, char *text, size_t n, const char *fmt, ...)
    NJ_PRINTF(4, 5);
/* A file of one number, decimal or 0x. */
bool nj__host_number(const struct nj_doctor *d, int64_t *out, const char *fmt, ...) NJ_PRINTF(3, 4);
/* The last path component of a symbolic link's target. */
bool nj__host_link(const struct nj_doctor *d, char *name, size_t n, const char *fmt, ...)
    NJ_PRINTF(4, 5);
/* Sorted names in a folder, without those that begin with a dot. Returns their number; the caller
 * always frees *names. */
uint32_t nj__host_names(const struct nj_doctor *d, struct dirent ***names, const char *fmt, ...)
    NJ_PRINTF(3, 4);
void nj__host_names_free(struct dirent **names, uint32_t n);

/* Called for each line, without its newline. `path` is relative to the root. */
typedef void nj_line_fn(void *ctx, const char *path, char *line);
/* Call `take` for each line. False: the file cannot be read. */
bool nj__host_lines(const struct nj_doctor *d, nj_line_fn *take, void *ctx, const char *fmt, ...)
    NJ_PRINTF(4, 5);
/* The same for each file of the folder whose name ends with `end`. */
void nj__host_lines_below(const struct nj_doctor *d, nj_line_fn *take, void *ctx,
                          const char *folder, const char *end);
/* The value of a word of the kernel's command line, the last one if repeated: "2-3" of
 * "isolcpus=2-3", "" of a word without a value. False: not given. */
bool nj__host_cmdline(const struct nj_doctor *d, const char *word, char *value, size_t n);

/* --- facts and their checks ----------------------------------------------------------------- */

/* iommu.c */
void nj__facts_iommu(struct nj_doctor *d);
void nj__check_iommu(struct nj_doctor *d);

/* route.c */
struct nj_route_if {
    char name[IF_NAMESIZE],
        top[IF_NAMESIZE]; /* `top`: the interface with the route, stacked on `name` */
    bool is_default;
    bool has_device; /* it, or a lower interface, belongs to a device (PCI, USB) */
};
void nj__facts_routes(struct nj_doctor *d);
/* The routes of an interface, or NULL. */
struct nj_route_if *nj__route_of(const struct nj_doctor *d, const char *interface);
/* An interface whose default route leads to no device, or NULL. Call after has_device is set for
 * the interfaces of NICs. */
const struct nj_route_if *nj__route_without_nic(const struct nj_doctor *d);

/* nic.c; after IOMMU and routes */
void nj__facts_nics(struct nj_doctor *d);
void nj__check_nics(struct nj_doctor *d);

/* memory.c; after NICs */
void nj__facts_memory(struct nj_doctor *d);
void nj__check_memory(struct nj_doctor *d);

/* cpu.c */
bool nj__facts_cpus(struct nj_doctor *d, const char *lcores, char *why, size_t why_bytes);
void nj__check_cpus(struct nj_doctor *d);

/* user.c */
bool nj__facts_user(struct nj_doctor *d, const char *name, char *why, size_t why_bytes);
/* Which NICs the user can use. Call after NICs. */
void nj__facts_usable(struct nj_doctor *d);
void nj__check_user(struct nj_doctor *d);
