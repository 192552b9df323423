/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: gathers the facts of the host, runs all checks and prints the summary. */
#include "doctor/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nightjar/server.h>

#include "base/set_error.h"

static void check_all(struct nj_doctor *d)
{
    nj__check_memory(d);
    nj__check_iommu(d);
    nj__check_nics(d);
    nj__check_cpus(d);
    nj__check_user(d);
    nj__print_finding(d);
}

/* The conclusion from all findings. */
static const char *conclusion(const struct nj_doctor *d)
{
    if (d->n_printed[NJ_VERDICT_ERROR] > 0)
        return ": nightjar cannot start on a NIC of this host yet";
    if (d->huge_pages_in_use)
        return ": nightjar can start on a NIC of this host once more huge pages are free";
    return "";
}

static void print(struct nj_doctor *d)
{
    const uint32_t *n = d->n_printed;

    if (d->json)
        fprintf(d->out, "{\"version\": \"%s\", \"lines\": [", nj_version());
    check_all(d);
    if (d->json)
        fputs("\n]}\n", d->out);
    else
        fprintf(d->out, "%u error%s, %u warning%s%s\n", n[NJ_VERDICT_ERROR],
                n[NJ_VERDICT_ERROR] == 1 ? "" : "s", n[NJ_VERDICT_WARNING],
                n[NJ_VERDICT_WARNING] == 1 ? "" : "s", conclusion(d));
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, X_OK) == 0;
}

/* The exit status after all output. */
static int finish(const struct nj_doctor *d, char *why, size_t why_bytes)
{
    errno = 0;
    if (fflush(d->out) != 0 || ferror(d->out)) {
        nj_set_error(why, why_bytes, "the output cannot be written%s%s", errno ? ": " : "",
                     errno ? strerror(errno) : "");
        return NJ_DOCTOR_FAILED;
    }
    return d->n_printed[NJ_VERDICT_ERROR] > 0 ? NJ_DOCTOR_FAILED : 0;
}

int nj__doctor_run(const struct nj_doctor_config *config, FILE *out, char *why, size_t why_bytes)
{
    struct nj_doctor *d = calloc(1, sizeof *d);

    if (!d) {
        nj_set_error(why, why_bytes, "no memory");
        return NJ_DOCTOR_FAILED;
    }
    d->root = config->root ? config->root : "";
    /* under sudo this process is root, but the user's shell is not */
    d->sudo = geteuid() == 0 && !getenv("SUDO_USER") ? "" : "sudo ";
    d->out = out;
    d->json = config->json;
    int status = NJ_DOCTOR_USAGE;
    if (*d->root && !is_folder(d->root)) {
        nj_set_error(why, why_bytes, "--sysroot %s: there is no such folder", d->root);
    } else if (nj__facts_user(d, config->user, why, why_bytes) &&
               nj__facts_cpus(d, config->lcores, why, why_bytes)) {
        nj__facts_iommu(d);
        nj__facts_routes(d);
        nj__facts_nics(d);
        nj__facts_usable(d);
        nj__facts_memory(d);
        print(d);
        status = finish(d, why, why_bytes);
    }
    free(d->route);
    free(d->nic);
    free(d);
    return status;
}
