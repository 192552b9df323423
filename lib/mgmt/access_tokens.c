/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/access_tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_error.h"
#include "base/set_error.h"

bool nj__mgmt_token_set(struct nj_mgmt_token *t, const char *text, size_t n)
{
    if (n < NJ_TOKEN_BYTES_MIN || n > NJ_TOKEN_BYTES_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    *t = (struct nj_mgmt_token){.is_set = true, .hash = nj_secret_hash(text, n)};
    return true;
}

static int read_line(int fd, const char *option, const char *path, struct nj_mgmt_token *t,
                     char *why, size_t why_bytes)
{
    char text[NJ_TOKEN_BYTES_MAX + 2];
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return nj_set_error(why, why_bytes, "--%s %s: it is no file", option, path);
    if (st.st_mode & S_IRWXO)
        return nj_set_error(why, why_bytes,
                            "--%s %s: other users have rights to it: chmod o= %s, and make a new "
                            "token if they could read it",
                            option, path, path);
    ssize_t n_read = read(fd, text, sizeof text);
    size_t n_text = n_read > 0 ? (size_t)n_read : 0, n = 0;
    while (n < n_text && text[n] != '\n' && text[n] != '\r')
        n++;
    bool ok = nj__mgmt_token_set(t, text, n);
    explicit_bzero(text, sizeof text);
    return ok ? 0
              : nj_set_error(why, why_bytes,
                             "--%s %s: expected a line of %u to %u characters of ASCII without "
                             "spaces, e.g. of openssl rand -hex 32",
                             option, path, NJ_TOKEN_BYTES_MIN, NJ_TOKEN_BYTES_MAX);
}

static int read_file(const char *option, const char *path, struct nj_mgmt_token *t, char *why,
                     size_t why_bytes)
{
    *t = (struct nj_mgmt_token){0};
    if (!path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return nj_set_error(why, why_bytes, "--%s %s: %s", option, path,
                            nj_open_error(path, errno));
    int rc = read_line(fd, option, path, t, why, why_bytes);
    close(fd);
    return rc;
}

int nj_mgmt_tokens_read(const char *write_file, const char *reading_file,
                        struct nj_mgmt_tokens *out, char *why, size_t why_bytes)
{
    if (read_file("management-token", write_file, &out->write, why, why_bytes) != 0)
        return -1;
    return read_file("management-read-token", reading_file, &out->read, why, why_bytes);
}

static bool is_token(const struct nj_mgmt_token *t, const struct nj_secret_hash *hash)
{
    return t->is_set && nj_secret_hash_eq(&t->hash, hash);
}

enum nj_mgmt_right nj__mgmt_tokens_right(const struct nj_mgmt_tokens *t, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t n = authorization ? strnlen(authorization, sizeof scheme + NJ_TOKEN_BYTES_MAX) : 0;

    if (n < sizeof scheme || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return NJ_MGMT_NOTHING;
    const char *text = authorization + sizeof scheme - 1;
    text += strspn(text, " ");
    struct nj_secret_hash hash = nj_secret_hash(text, strnlen(text, NJ_TOKEN_BYTES_MAX + 1));
    bool may_write = is_token(&t->write, &hash), may_read = is_token(&t->read, &hash);
    return may_write ? NJ_MGMT_WRITE : may_read ? NJ_MGMT_READ : NJ_MGMT_NOTHING;
}
