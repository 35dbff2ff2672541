/* What the last sync saw: one block per folder, of which the last one in the file counts. */
#ifndef MANIFEST_H
#define MANIFEST_H

#include "../walk.h"

enum { /* flags of an entry */
  LINKED = 1,     /* more than one name */
  BIG = 2,        /* over the file limit, not captured */
  FOREIGN = 4,    /* git config, written by the server */
  UNREADABLE = 8, /* refused to be read, not captured */
};

enum { GONE = 2 };

struct entry {
  uint64_t print; /* size, times, inode, mode and owner in one number; 0 is never equal */
  uint64_t size;
  uint64_t key;   /* device and inode */
  uint32_t mode;
  uint16_t flags;
  uint16_t length; /* of the whole entry, a multiple of 8 */
  char name[];
};

struct block {
  uint64_t print; /* mode and owner of the folder itself */
  uint64_t times; /* its mtime and ctime */
  uint64_t key;
  uint64_t bytes; /* of the files in it */
  uint32_t files, special, count;
  uint32_t length; /* of the whole block, a multiple of 8 */
  uint32_t entries; /* offset of the first entry */
  uint32_t empty;   /* 1: skipped, so nothing below it is captured; GONE: the folder is not there any more */
  char path[];    /* relative, "." for the root */
};

struct slot {
  const struct block *block; /* NULL: free */
  bool dropped, scanned;
  bool written; /* false: the file says something else of it */
};

struct manifest {
  struct slot *slots;
  size_t room, count;
  uint64_t options, generation;
  size_t length;   /* of the file, as far as it counts */
  bool found;      /* a file was there */
  bool other_boot; /* written before the machine last started */
  bool changed;
};

/* 0, or -1 with errno; EBADMSG when the file is damaged. A missing file is an empty manifest. */
int manifest_load(struct manifest *manifest, const char *path);
struct slot *manifest_find(struct manifest *manifest, const char *path); /* NULL: none, or dropped */
void manifest_put(struct manifest *manifest, const struct block *block);   /* keeps the pointer */
void manifest_drop(struct manifest *manifest, struct slot *slot);
int manifest_save(struct manifest *manifest, const char *path);           /* aside, then renamed */
/* Adds what changed to the file it was loaded from, or writes that anew where much of it would be out of date. A process that is killed
   leaves it as it was, or complete. */
int manifest_update(struct manifest *manifest, const char *path);

static inline const struct entry *first_entry(const struct block *block) { return (const void *)((const char *)block + block->entries); }
static inline const struct entry *next_entry(const struct entry *entry) { return (const void *)((const char *)entry + entry->length); }

/* A block under construction, in a buffer that is used again and again. */
void block_begin(struct output *buffer, const char *path);
void block_add(struct output *buffer, const struct entry *values, const char *name);
void block_end(struct output *buffer);

uint64_t mix(uint64_t hash, uint64_t value);
uint64_t print_of(const struct stat *status); /* of a file or link */
uint64_t print_of_folder(const struct stat *status);
uint64_t times_of(const struct stat *status);
uint64_t key_of(const struct stat *status);

#endif
