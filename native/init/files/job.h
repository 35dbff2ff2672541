/* What the file operations share. All of it runs in a forked child. */
#ifndef JOB_H
#define JOB_H

#include "../../shared/frames.h"
#include "../init.h"

#include <sys/stat.h>

#define LIST_DEFAULT 10000
#define LIST_MOST 1000000
#define DEPTH_MOST 256           /* levels entered; each holds a descriptor */
#define WATCHES_MOST 8192

struct job {
  int fd;                        /* the connection, blocking */
  const struct fields *request;
  const char *path;
  const char *early;             /* frames that came with the request */
  size_t early_length;
  size_t length;
  char buffer[2 * CHUNK_MAX];    /* frames on their way out */
};

void job_fail(struct job *job, int error, const char *step, const char *code, const char *message) __attribute__((noreturn));
void job_send(struct job *job, uint8_t kind, const void *payload, size_t length); /* at most CHUNK_MAX */
void job_reply(struct job *job);
bool job_receive(struct job *job, char *data, uint8_t *kind, size_t *length);     /* into CHUNK_MAX bytes; false: the client is gone */
void flush(struct job *job);
void put_stat(struct output *output, const char *path, const struct stat *stat);
void put_entry(struct output *output, int folder, const char *name, const char *path, const struct stat *stat);

/* hand.c */
bool is_handed(const struct job *job, int fd);                                    /* whether it was asked for, and can be */
void job_hand(struct job *job, int fd, const struct output *fields);              /* a REPLY with the descriptor */
/* data.c */
void file_read(struct job *job);
void file_write(struct job *job);
int open_aside(struct job *job, int folder);   /* a new file that is put in place when it is whole; one at a time */
void place_aside(struct job *job, int fd, const char *name, const struct stat *before, mode_t mode);
void remove_aside(void);
/* tree.c */
void file_list(struct job *job);
void file_stat(struct job *job);
void file_move(struct job *job);
void file_remove(struct job *job);
void file_mkdir(struct job *job);
int remove_tree(int parent, const char *name); /* whatever it is; 0 or -1 */
bool make_parents(const char *path);       /* every folder above the last name */
/* apply.c */
void file_apply(struct job *job);
/* watch.c */
void file_watch(struct job *job);

#endif
