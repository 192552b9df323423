/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: an access record of any bytes. Each format must give one valid line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/access_format.h"
#include "support/access_check.h"

static void require(const char *bad, const char *line)
{
    if (!bad)
        return;
    fprintf(stderr, "%s: %s\n", bad, line);
    abort();
}

static uint16_t length(uint16_t wanted, size_t *left)
{
    uint16_t n = wanted < *left ? wanted : (uint16_t)*left;
    *left -= n;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static char line[NJ_ACCESS_LINE_BYTES + 1];
    struct nj_access_time_cache clock = {0};
    struct nj_access_record a = {0};
    size_t left = sizeof a.text;

    memcpy(&a, data, n_bytes < sizeof a ? n_bytes : sizeof a);
    uint8_t flags = n_bytes > 0 ? data[0] : 0;
    a.version = flags / 8 % NJ_N_HTTP_VERSIONS;
    a.scheme = flags / 32 % NJ_N_SCHEMES;
    a.complete = flags & 1;
    a.cut = flags & 2;
    a.n_method = length(a.n_method, &left);
    a.n_path = length(a.n_path, &left);
    a.n_authority = length(a.n_authority, &left);
    a.n_referer = length(a.n_referer, &left);
    a.n_agent = length(a.n_agent, &left);
    a.n_subject = length(a.n_subject, &left);
    a.tls_suite = flags & 4 ? "TLS_AES_128_GCM_SHA256" : NULL;
    size_t n = nj_access_format_line(NJ_ACCESS_JSON, &a, &clock, line);
    line[n] = '\0';
    require(n <= NJ_ACCESS_LINE_BYTES ? NULL : "too long", line);
    require(access_check_json(line, n), line);
    n = nj_access_format_line(NJ_ACCESS_LOGFMT, &a, &clock, line);
    line[n] = '\0';
    require(n <= NJ_ACCESS_LINE_BYTES ? NULL : "too long", line);
    require(access_check_logfmt(line, n), line);
    clock = (struct nj_access_time_cache){0};
    n = nj_access_format_line(NJ_ACCESS_COMBINED, &a, &clock, line);
    line[n] = '\0';
    require(access_check_combined(&a, line, n), line);
    return 0;
}
