from typing import Union

from typing_extensions import assert_type

import robocache as rbc


def contexts() -> None:
    with rbc.Context("cpu", threads=2) as context:
        assert_type(context.info.num_threads, Union[int, None])
        assert_type(rbc.info().contexts["cpu"], rbc.ContextInfo)
    try:
        rbc.Context("cuda:9")
    except rbc.RoboCacheError as error:
        assert_type(error.status, rbc.Status)
    assert_type(rbc.__version__, str)
