/* mainspring.schemas._native: the compiled codec of records, for where a C compiler was at hand at the installation. */

#include "shape.h"

typedef struct {
    PyObject_HEAD
    Shape *shape;
    PyObject *malformed;
} RecordCodec;

static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *described, *malformed;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "RecordCodec takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "OO:RecordCodec", &described, &malformed))
        return NULL;
    Shape *shape = shape_from(described);
    if (shape == NULL)
        return NULL;
    RecordCodec *self = shape->kind == KIND_RECORD ? (RecordCodec *)type->tp_alloc(type, 0) : NULL;
    if (self == NULL) {
        shape_free(shape);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "RecordCodec takes the shape of a record");
        return NULL;
    }
    self->shape = shape;
    self->malformed = Py_NewRef(malformed);
    return (PyObject *)self;
}

static void codec_dealloc(RecordCodec *self) {
    PyTypeObject *type = Py_TYPE(self);
    shape_free(self->shape);
    Py_XDECREF(self->malformed);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *codec_encode(RecordCodec *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 3 || !PyBytes_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "encode takes a record, its place in a transaction or None, and bytes");
        return NULL;
    }
    return write_record(self->shape, args[0], args[1], args[2]);
}

static PyObject *codec_decode(RecordCodec *self, PyObject *const *args, Py_ssize_t count) {
    if (count != 2 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "decode takes bytes and an index");
        return NULL;
    }
    Py_ssize_t index = PyLong_AsSsize_t(args[1]);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    return read_record(self->shape, args[0], index, self->malformed);
}

static PyMethodDef codec_methods[] = {
    {"encode", (PyCFunction)(void (*)(void))codec_encode, METH_FASTCALL,
     "encode(record, txn, head, /)\n--\n\nThe head and the Avro bytes of a record."},
    {"decode", (PyCFunction)(void (*)(void))codec_decode, METH_FASTCALL,
     "decode(data, index, /)\n--\n\nThe record whose Avro bytes begin at the index and end with the data."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot codec_slots[] = {
    {Py_tp_doc, "RecordCodec(shape, malformed, /)\n--\n\nReads and writes the records of one schema."},
    {Py_tp_new, codec_new},
    {Py_tp_dealloc, codec_dealloc},
    {Py_tp_methods, codec_methods},
    {0, NULL},
};

static PyType_Spec codec_spec = {
    .name = "mainspring.schemas._native.RecordCodec",
    .basicsize = sizeof(RecordCodec),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = codec_slots,
};

static int module_exec(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &codec_spec, NULL);
    if (type == NULL)
        return -1;
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "mainspring.schemas._native",
    .m_doc = "The compiled codec of records.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__native(void) {
    return PyModuleDef_Init(&module);
}
