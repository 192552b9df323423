/* SPDX-License-Identifier: BSD-3-Clause */
/* The file store of a server and the reader of large files, as the configuration wants them; with
 * warnings about what will not work. Main thread. */
#pragma once

#include <nightjar/server.h>

#include "server/shards.h"
#include "store/file_reader.h"
#include "store/file_store.h"

struct nj_file_serving {
    struct nj_file_store *store;   /* NULL: no files are served */
    struct nj_file_reader *reader; /* NULL: workers read large files */
};

/* `keeps_root`: the server will run as root. Returns 0, or -1 with the reason. */
int nj__file_serving_open(struct nj_file_serving *f, const struct nj_server_config *config,
                          bool keeps_root, char *why, size_t why_bytes);
/* When nobody uses files any more. */
void nj__file_serving_close(struct nj_file_serving *f);

/* Start the reader, on these CPUs, if there is a store and the configuration does not want threads.
 * Returns 0, or -1 with the reason. */
int nj__file_serving_start_reader(struct nj_file_serving *f, enum nj_file_reads how,
                                  struct nj_shards *shards, const cpu_set_t *cpus, char *why,
                                  size_t why_bytes);
/* Returns the number of reads that did not end within `wait_ms`; the memory that they use stays
 * allocated. */
uint32_t nj__file_serving_stop_reader(struct nj_file_serving *f, uint32_t wait_ms);
