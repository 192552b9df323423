/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients of TLS 1.3 over the kernel's sockets, driven by one thread. libssl makes the handshakes;
 * key exchange is X25519, so that each server computes the same.
 *
 * A connection ends with RST, which leaves no TIME_WAIT: the ports suffice for any number of them.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "base/types.h"

#define SOURCES_MAX 64u

struct target {
    struct sockaddr_in server;
    struct in_addr source[SOURCES_MAX]; /* own addresses, in turn */
    uint32_t n_sources;                 /* 0: the kernel chooses */
};

struct client_options {
    struct target to;
    uint32_t n_open;  /* connections that are opened at once */
    nj_ns duration;   /* of "run" */
    uint32_t rate;    /* handshakes begun per second; 0: as many as n_open allows */
    uint32_t n_total; /* connections of "hold" */
    bool resumed;     /* with the ticket of an earlier connection */
    bool request;     /* GET / after the handshake, and its response */
    bool silent;      /* nothing after the handshake */
    bool clear;       /* no TLS */
};

/* A non-blocking socket that connects. Negative: failed. `n` chooses the source address. */
int client_socket(const struct target *to, uint64_t n);
/* Ends a connection with RST. */
void client_reset(int fd);
/* NULL: no memory. */
SSL_CTX *client_ctx(void);

/* Both print one line of JSON. Return false after a message on stderr. */
/* Opens and resets connections for the duration. */
bool client_run(const struct client_options *o);
/* Opens n_total connections, prints its line, and keeps them until the end of standard input. */
bool client_hold(const struct client_options *o);

nj_ns client_now(void);
