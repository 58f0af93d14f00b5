from tests.tables.conftest import cache as cache
