/* A file that goes into or out of a sandbox. */
#ifndef CARRY_H
#define CARRY_H

#include "front.h"

/* Started with `--carry`: the exit code. */
int carry(char **words);

/* handed.c: a file that process 1 has opened */
enum { FILE_HANDED, FILE_REFUSED, FILE_OTHERWISE };
/* The first answer on a connection. Handed: a descriptor that can be read, or written if it goes `into` a sandbox. Refused: the payload of the ERROR. */
int receive_file(int cell, bool into, int *file, char **refusal, size_t *length);

/* bytes.c: from one regular file to another, from their present offsets to the end, or so many at most. False with errno. */
bool move_bytes(int from, int to, int64_t most);

#endif
