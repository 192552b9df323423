/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: CPUs of the lcores: isolation from other tasks, frequency governor, SMT. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/set_error.h"
#include "base/limits.h"
#include "doctor/doctor.h"
#include "topo/cpus.h"

#define LIST_BYTES 512u /* for NJ_SHARDS_MAX CPUs */
#define CPUS       "/sys/devices/system/cpu"

/* Reads a file with a list of CPUs. A file without a list ("(null)") is the empty set. */
static bool read_set(const struct nj_doctor *d, cpu_set_t *set, const char *path)
{
    char text[4096];
    bool is_there = nj__host_line(d, text, sizeof text, "%s", path);

    nj_cpus_parse(text, set);
    return is_there;
}

/* The hardware threads of the CPU's core. */
static void siblings_of(const struct nj_doctor *d, int cpu, cpu_set_t *set)
{
    char path[128];

    snprintf(path, sizeof path, CPUS "/cpu%d/topology/thread_siblings_list", cpu);
    read_set(d, set, path);
    CPU_SET(cpu, set);
}

/* Returns `set` minus `other`. */
static cpu_set_t without(const cpu_set_t *set, const cpu_set_t *other)
{
    cpu_set_t left;

    CPU_AND(&left, set, other);
    CPU_XOR(&left, set, &left);
    return left;
}

/* One CPU of each core, at most NJ_SHARDS_MAX. */
static void one_per_core(const struct nj_doctor *d, cpu_set_t left, cpu_set_t *lcores)
{
    CPU_ZERO(lcores);
    for (int cpu = 0; cpu < (int)NJ_TOPO_CPUS_MAX; cpu++) {
        if (!CPU_ISSET(cpu, &left) || CPU_COUNT(lcores) == NJ_SHARDS_MAX)
            continue;
        cpu_set_t core;
        siblings_of(d, cpu, &core);
        left = without(&left, &core);
        CPU_SET(cpu, lcores);
    }
}

/* The isolated CPUs, or if there are none one of each core except the core of CPU 0, which the
 * kernel needs. */
static void guess_lcores(struct nj_doctor *d)
{
    cpu_set_t isolated, core;

    read_set(d, &isolated, CPUS "/isolated");
    siblings_of(d, 0, &core);
    CPU_AND(&isolated, &isolated, &d->online);
    core = without(&d->online, &core);
    one_per_core(d, CPU_COUNT(&isolated) > 0 ? isolated : core, &d->lcores);
}

bool nj__facts_cpus(struct nj_doctor *d, const char *lcores, char *why, size_t why_bytes)
{
    read_set(d, &d->online, CPUS "/online");
    d->lcores_given = lcores != NULL;
    if (!lcores) {
        guess_lcores(d);
    } else if (!nj_cpus_parse(lcores, &d->lcores) || CPU_COUNT(&d->lcores) == 0 ||
               CPU_COUNT(&d->lcores) > (int)NJ_SHARDS_MAX) {
        nj_set_error(why, why_bytes, "--lcores %s: expected 1 to %u CPUs such as 2-5,8", lcores,
                     NJ_SHARDS_MAX);
        return false;
    }
    return true;
}

/* The lcores that are online CPUs, if the online CPUs are known. */
static cpu_set_t lcores_here(const struct nj_doctor *d)
{
    cpu_set_t here;

    CPU_AND(&here, &d->lcores, &d->online);
    return CPU_COUNT(&d->online) > 0 ? here : d->lcores;
}

/* Do the lcores leave no CPU for the kernel? */
static bool uses_all_cpus(const struct nj_doctor *d)
{
    cpu_set_t here = lcores_here(d);

    return CPU_COUNT(&d->online) > 0 && CPU_EQUAL(&here, &d->online);
}

/* --- checks --------------------------------------------------------------------------------- */

static void check_lcores(struct nj_doctor *d)
{
    char online[LIST_BYTES], lcores[LIST_BYTES], off[LIST_BYTES];
    cpu_set_t missing = without(&d->lcores, &d->online);

    nj_cpus_format(&d->online, online, sizeof online);
    nj_cpus_format(&d->lcores, lcores, sizeof lcores);
    nj_cpus_format(&missing, off, sizeof off);
    nj__begin_finding(d, "lcores");
    if (*off) {
        nj__set_verdict(d, NJ_VERDICT_ERROR, "CPU %s is not online (CPUs %s are)", off, online);
        nj__advise(d, "nightjar --print-placement\n");
    } else if (!*lcores) {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "no CPU is left for lcores: those online (%s) are one core", online);
    } else if (uses_all_cpus(d)) {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "CPUs %s are all CPUs of the host: none is left for the kernel", lcores);
        nj__advise(d, "# leave one out, in -l as well\n");
    } else {
        nj__add_text(d, "CPUs %s of %s%s", lcores, online,
                     d->lcores_given ? "" : " (assumed; --lcores LIST names others)");
    }
}

/* "isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3" */
static void advise_isolation(struct nj_doctor *d)
{
    char lcores[LIST_BYTES], line[4 * LIST_BYTES];
    cpu_set_t here = lcores_here(d);

    if (uses_all_cpus(d))
        return;
    nj_cpus_format(&here, lcores, sizeof lcores);
    snprintf(line, sizeof line, "isolcpus=%s nohz_full=%s rcu_nocbs=%s", lcores, lcores, lcores);
    nj__advise_cmdline(d, "cpus", line);
}

/* Are all lcores in the set? `is_known` false: the kernel does not support it. */
static void check_set(struct nj_doctor *d, const char *id, const cpu_set_t *set, bool is_known,
                      const char *else_what)
{
    char text[LIST_BYTES], lacks[LIST_BYTES];
    cpu_set_t here = lcores_here(d), missing = without(&here, set);

    nj_cpus_format(set, text, sizeof text);
    nj_cpus_format(&missing, lacks, sizeof lacks);
    nj__begin_finding(d, "%s", id);
    if (!*lacks) {
        nj__add_text(d, "%s", *text ? text : "no lcores");
    } else {
        nj__set_verdict(d, NJ_VERDICT_WARNING, "lcores %s are not included: %s%s", lacks, else_what,
                        is_known ? "" : "; this kernel may not support it");
        advise_isolation(d);
    }
}

/* Parses "7", or "N" for the last CPU. */
static unsigned parse_cpu(const char **text, unsigned last)
{
    char *end;

    if (**text == 'N' || **text == 'n') {
        ++*text;
        return last;
    }
    unsigned long n = strtoul(*text, &end, 10);
    *text = end;
    return n < NJ_TOPO_CPUS_MAX ? (unsigned)n : NJ_TOPO_CPUS_MAX - 1;
}

/* Parses a CPU list of the kernel's command line: "1-3,8", "1-N", "all", "0-31:2/4" (2 of each
 * 4). */
static void read_kernel_list(const struct nj_doctor *d, const char *text, cpu_set_t *set)
{
    unsigned last = 0;

    CPU_ZERO(set);
    for (unsigned cpu = 0; cpu < NJ_TOPO_CPUS_MAX; cpu++)
        last = CPU_ISSET(cpu, &d->online) ? cpu : last;
    if (strncmp(text, "all", 3) == 0) {
        *set = d->online;
        return;
    }
    for (; isdigit((unsigned char)*text) || *text == 'N'; text += *text == ',') {
        unsigned from = parse_cpu(&text, last), to = from, used = 1, group = 1;
        if (*text == '-' && (text++, true))
            to = parse_cpu(&text, last);
        if (sscanf(text, ":%u/%u", &used, &group) == 2)
            text += strcspn(text, ",");
        for (unsigned cpu = from; cpu <= to && group > 0; cpu++)
            if ((cpu - from) % group < used)
                CPU_SET(cpu, set);
    }
}

static void check_isolation(struct nj_doctor *d)
{
    cpu_set_t isolated, nohz, rcu;
    char text[LIST_BYTES];

    read_set(d, &isolated, CPUS "/isolated");
    bool has_nohz = read_set(d, &nohz, CPUS "/nohz_full");
    /* /sys does not show rcu_nocbs. Without a list it applies to all CPUs; nohz_full implies it. */
    if (nj__host_cmdline(d, "rcu_nocbs", text, sizeof text) && !*text)
        snprintf(text, sizeof text, "all");
    read_kernel_list(d, text, &rcu);
    CPU_OR(&rcu, &rcu, &nohz);
    check_set(d, "isolcpus", &isolated, true, "other processes run there too");
    check_set(d, "nohz_full", &nohz, has_nohz, "the timer interrupts them");
    check_set(d, "rcu_nocbs", &rcu, true, "they run RCU callbacks of the kernel");
}

static void check_governor(struct nj_doctor *d)
{
    char other[64] = "", text[LIST_BYTES];
    cpu_set_t slow;
    bool any = false;

    CPU_ZERO(&slow);
    for (int cpu = 0; cpu < (int)NJ_TOPO_CPUS_MAX; cpu++) {
        char governor[64];
        if (!CPU_ISSET(cpu, &d->lcores) ||
            !nj__host_line(d, governor, sizeof governor, CPUS "/cpu%d/cpufreq/scaling_governor",
                           cpu))
            continue;
        any = true;
        if (strcmp(governor, "performance") == 0)
            continue;
        CPU_SET(cpu, &slow);
        snprintf(other, sizeof other, "%s", governor);
    }
    nj__begin_finding(d, "governor");
    if (*other) {
        nj_cpus_format(&slow, text, sizeof text);
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "%s on lcores %s: their frequency is not at its highest", other, text);
        nj__advise(d, "echo performance | %stee " CPUS "/cpu*/cpufreq/scaling_governor\n", d->sudo);
        nj__advise(d, "# at each boot: cpufreq.default_governor=performance on the "
                      "kernel's command line\n" NJ_UNTESTED);
    } else {
        nj__add_text(d, "%s", any ? "performance" : "the kernel does not set the frequency");
    }
}

/* The first pair of lcores on one core. */
static bool find_pair(const struct nj_doctor *d, int *a, int *b)
{
    for (*a = 0; *a < (int)NJ_TOPO_CPUS_MAX; (*a)++) {
        cpu_set_t core;
        if (!CPU_ISSET(*a, &d->lcores))
            continue;
        siblings_of(d, *a, &core);
        for (*b = *a + 1; *b < (int)NJ_TOPO_CPUS_MAX; (*b)++)
            if (CPU_ISSET(*b, &d->lcores) && CPU_ISSET(*b, &core))
                return true;
    }
    return false;
}

static void check_smt(struct nj_doctor *d)
{
    int64_t active;
    int a, b;

    nj__begin_finding(d, "smt");
    if (find_pair(d, &a, &b)) {
        nj__set_verdict(d, NJ_VERDICT_WARNING,
                        "lcores %d and %d are threads of one core: each slows the other down", a,
                        b);
        nj__advise(d, "# proposes lcores on different cores:\n"
                      "nightjar --print-placement\n");
    } else if (nj__host_number(d, &active, CPUS "/smt/active") && active == 1) {
        nj__add_text(d, "on; each lcore is on a core of its own");
    } else {
        nj__add_text(d, "off");
    }
}

void nj__check_cpus(struct nj_doctor *d)
{
    check_lcores(d);
    check_isolation(d);
    check_governor(d);
    check_smt(d);
}
