/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS of the simulated world: one certificate, and OpenSSL for clients and handshakes. OpenSSL's
 * random numbers come from the seed, and its time is virtual time, so each byte of a run is
 * determined.
 */
#pragma once

#include "base/types.h"
#include "conn.h"

struct sim;
struct sim_tls; /* kept from seed to seed, because a certificate takes milliseconds */

#define SIM_TLS_PORT 443u

struct sim_tls *nj_sim_tls_new(void);
void nj_sim_tls_free(struct sim_tls *t);
/* A seed begins. */
void nj_sim_tls_begin(struct sim *sim);
/* After each step of a shard. */
void nj_sim_tls_check(struct sim *sim);
struct nj_tls_current_context *nj_sim_tls_context(struct sim_tls *t);

/* --- tls_client.c: a connection ------------------------------------------------------------ */

void nj_sim_tls_plan(struct sim_conn *c);
/* TCP is open: writes the ClientHello. */
void nj_sim_tls_open(struct sim_conn *c);
/* Bytes of the server. Their plaintext goes to HTTP, which begins after the handshake. */
void nj_sim_tls_input(struct sim_conn *c, const uint8_t *data, uint32_t n);
/* The next bytes to be sent; 0: none. `may_close`: nothing follows what HTTP has to send. */
uint32_t nj_sim_tls_output(struct sim_conn *c, uint8_t *out, uint32_t n_room, bool may_close);
/* The connection has ended; `died`: without a FIN of each side. Returns whether its requests had to
 * be answered. */
bool nj_sim_tls_over(struct sim_conn *c, bool died);
void nj_sim_tls_fini(struct sim_conn *c);
/* A client of the world's context, with the ticket of an earlier connection if there is one. */
SSL *nj_sim_tls_client(struct sim_tls *t, bool resumes);
