/* What a record looks like on both sides: the order of its fields in Avro, the places of its slots in memory. */

#ifndef MAINSPRING_SHAPE_H
#define MAINSPRING_SHAPE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef enum {
    KIND_INT,
    KIND_LONG,
    KIND_BOOLEAN,
    KIND_DOUBLE,
    KIND_STRING,
    KIND_BYTES,
    KIND_OPTIONAL, /* a union of null and one other */
    KIND_CHOICE,   /* a union of records */
    KIND_ARRAY,
    KIND_ENUM,
    KIND_RECORD,
} Kind;

/* One byte holds the number of an enum's member, or of a branch: zigzag, and no second byte. */
#define ONE_BYTE_NUMBERS 64

typedef struct Shape {
    Kind kind;
    PyTypeObject *cls;     /* of a record or an enum */
    Py_ssize_t count;      /* of parts */
    struct Shape **parts;  /* fields of a record, branches of a choice, items of an array, what an optional one holds */
    Py_ssize_t *offsets;   /* of a record: where each field's slot is */
    Py_ssize_t txn;        /* of a record: which field is its place in the transaction; -1: none */
    Py_ssize_t remembered; /* of a record: where the slot of its own bytes is; 0: it has none */
    PyObject **members;    /* of an enum: by number, NULL where there is none */
} Shape;

/* The shape that nested tuples describe (see native.py), or NULL with an exception set. */
Shape *shape_from(PyObject *described);
void shape_free(Shape *shape);

/* The bytes of a record after `head`. `txn`: what takes the place of its own, or None. */
PyObject *write_record(const Shape *shape, PyObject *record, PyObject *txn, PyObject *head);

/* The record that begins at `index` and takes all the bytes. `malformed`: the class of errors for broken ones. */
PyObject *read_record(const Shape *shape, PyObject *data, Py_ssize_t index, PyObject *malformed);

static inline PyObject **slot(PyObject *record, Py_ssize_t offset) {
    return (PyObject **)((char *)record + offset);
}

#endif
