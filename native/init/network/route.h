/* Addresses that stand for names. */
#ifndef ROUTE_H
#define ROUTE_H

#define NAMES_NETWORK 0xc6120000u /* 198.18.0.0/15 */
#define NAMES_BITS 15

void route_names(void); /* they are loopback's own from now on */

#endif
