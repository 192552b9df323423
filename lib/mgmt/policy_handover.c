/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/policy_handover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/address_text.h"
#include "log/log.h"
#include "mgmt/blocks.h"

#define HEAD       "nightjar changes 1\n"
#define LINE_BYTES 512u
#define BYTES_MAX  ((NJ_BLOCKS_MAX + NJ_LIMIT_CHANGES_MAX + 2) * LINE_BYTES)

/* --- writing -------------------------------------------------------------------------------- */

static void write_blocks(struct nj_policies *p, nj_ns now, FILE *out)
{
    struct nj_block block[NJ_BLOCKS_MAX];
    uint32_t n = nj_policies_blocks(p, block);
    char text[NJ_NETWORK_TEXT_BYTES];

    for (uint32_t i = 0; i < n; i++) {
        const struct nj_block *b = &block[i];
        uint64_t left = b->until == NJ_NEVER ? 0
                        : b->until > now     ? (b->until - now + NJ_SEC - 1) / NJ_SEC
                                             : 1;
        fprintf(out, "block %s %" PRIu64 "\n", nj_network_text(&b->net.addr, b->net.bits, text),
                left);
    }
}

static bool write_limits(struct nj_policies *p, nj_ns now, FILE *out)
{
    struct nj_limit_shown *shown;
    uint32_t n = nj_policies_limits(p, &shown);
    char text[LINE_BYTES - 32];

    for (uint32_t i = 0; i < n; i++)
        if (nj_limit_change_format(&shown[i].change, now, text, sizeof text))
            fprintf(out, "limit %" PRIx64 " %s\n", shown[i].file_hash, text);
    bool ok = shown != NULL;
    free(shown);
    return ok;
}

int nj_mgmt_write_changes(struct nj_policies *p, nj_ns now)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (!out)
        return -1;
    fputs(HEAD, out);
    write_blocks(p, now, out);
    bool ok = write_limits(p, now, out);
    ok = fclose(out) == 0 && ok;
    int fd = ok ? memfd_create("nj_changes", MFD_CLOEXEC) : -1;
    if (fd >= 0 && write(fd, text, n) != (ssize_t)n) {
        close(fd);
        fd = -1;
    }
    free(text);
    return fd;
}

/* --- reading -------------------------------------------------------------------------------- */

struct record {
    char *text; /* its lines */
    nj_ns now;
    uint32_t n_blocks, n_limits, n_left_out;
};

/* "198.18.0.0/24 600" */
static bool read_block(const char *text, nj_ns now, struct nj_run_time_changes *out)
{
    size_t n = strcspn(text, " ");
    char *end;

    if (!text[n] || out->n_blocks == NJ_BLOCKS_MAX)
        return false;
    struct nj_block *b = &out->block[out->n_blocks];
    unsigned long seconds = strtoul(text + n + 1, &end, 10);
    if (*end || seconds > NJ_BLOCK_SECONDS_MAX || !nj_mgmt_parse_network(text, n, &b->net) ||
        !nj_net_has(&b->net, &b->net.addr))
        return false;
    b->until = seconds > 0 ? now + seconds * NJ_SEC : NJ_NEVER;
    out->n_blocks++;
    return true;
}

/* "9ae16a3b2f90404f class=a,rate=1MiB/s" */
static bool read_limit(const char *text, const struct nj_policy_file *f, nj_ns now,
                       struct nj_run_time_changes *out)
{
    struct nj_limit_change added;
    char *end;
    uint64_t hash = strtoull(text, &end, 16);
    struct nj_limit_changes *next = malloc(sizeof *next);
    bool ok = false;

    if (next && *end == ' ') {
        *next = out->limits;
        ok = nj_limit_changes_add_formatted(next, f, end + 1, now, &added) &&
             nj_limit_change_file_hash(&added, f) == hash;
        if (ok)
            out->limits = *next;
    }
    free(next);
    return ok;
}

static void read_lines(void *record, const struct nj_policy_file *f,
                       struct nj_run_time_changes *out)
{
    struct record *r = record;
    char *save = NULL;

    for (char *line = strtok_r(r->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bool ok = strncmp(line, "block ", 6) == 0   ? read_block(line + 6, r->now, out)
                  : strncmp(line, "limit ", 6) == 0 ? read_limit(line + 6, f, r->now, out)
                                                    : false;
        r->n_left_out += !ok;
    }
    r->n_blocks = out->n_blocks;
    r->n_limits = out->limits.n;
}

static bool put_in_force(struct nj_policies *p, struct record *r)
{
    char why[160];

    if (!nj_policies_restore(p, read_lines, r, why, sizeof why)) {
        nj_log(NJ_LEVEL_ERROR, "upgrade: blocks and changed limits are lost: %s", why);
        return false;
    }
    if (r->n_blocks + r->n_limits > 0)
        nj_log(NJ_LEVEL_INFO, "upgrade: %u block%s and %u changed limit%s stay in force",
               r->n_blocks, r->n_blocks == 1 ? "" : "s", r->n_limits, r->n_limits == 1 ? "" : "s");
    if (r->n_left_out > 0)
        nj_log(NJ_LEVEL_INFO,
               "upgrade: %u block%s or changed limit%s of the other process end: the file has "
               "another value now, or this version does not know them",
               r->n_left_out, r->n_left_out == 1 ? "" : "s", r->n_left_out == 1 ? "" : "s");
    return true;
}

bool nj_mgmt_read_changes(struct nj_policies *p, int fd, nj_ns now)
{
    char *text = calloc(1, BYTES_MAX + 1);
    ssize_t n = text ? pread(fd, text, BYTES_MAX, 0) : -1;
    bool ok = false;

    if (n > 0 && strncmp(text, HEAD, sizeof HEAD - 1) == 0)
        ok = put_in_force(p, &(struct record){.text = text + sizeof HEAD - 1, .now = now});
    else
        nj_log(NJ_LEVEL_WARNING, "upgrade: the other process has handed over no blocks and changed "
                                 "limits that this version understands");
    free(text);
    return ok;
}
