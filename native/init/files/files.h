/* File operations of the sandbox channel. */
#ifndef FILES_H
#define FILES_H

#include "../channel/channel.h"

bool file_known(const char *op);
void file_start(struct connection *connection, const struct fields *request);
void file_child(int fd, const struct fields *request, const char *early, size_t early_length) __attribute__((noreturn));

#endif
