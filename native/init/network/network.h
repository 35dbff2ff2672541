/* Bytes between the sandbox and what lies outside: ports, and names for programs that know no proxy. */
#ifndef NETWORK_H
#define NETWORK_H

#include "../channel/channel.h"
#include "route.h"

#define DIRECT_PORTS_FILE "ports"

/* pump.c */
void dial_port(struct connection *connection, uint16_t port, bool six);
void dial_path(struct connection *connection, const char *path);
void forwards_listen(void);
int dial_outside(const char *name);    /* a socket in the folder of forwarded ones, -1 if there is none */
void hand_over(int inside, const char *preface, size_t length); /* to the proxy, which has it alone; takes the descriptor, whatever comes of it */

/* ask.c: what the server knows of a name; `told` is called once, maybe at once */
enum { NAME_EXISTS = '+', NAME_MISSING = '-', NAME_UNKNOWN = '?' };
bool ask_room(void);
bool ask_crowded(void);
void ask_name(const char *name, void (*told)(void *context, char answer), void *context);

/* names.c: a resolver that knows what exists, and no address of it */
void names_listen(void);
const char *name_of(uint32_t address); /* the name an address stands for, NULL if none */

/* direct.c: what was dialled by such an address */
bool direct_allowed(void);             /* false: there is no network now */
void direct_listen(uint32_t address);  /* programs that dial it are led to the proxy from now on */

#endif
