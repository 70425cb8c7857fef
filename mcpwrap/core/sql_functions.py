"""Functions whose result is made of one row, or has a fixed size however many rows it is made of.

The lists are closed: a function that is not named here may collect, as `query_to_xml()` and the
functions of users can. A name is sqlglot's key of a class, and in NAMED_... that of a function for
which sqlglot has no class.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Aggregates that make one row of a query without GROUP BY in every dialect that has them. ANY_VALUE
# is not among them: MySQL returns it for each row.
TOTALS = _names("""
    approxdistinct approxquantile avg corr count countif covarpop covarsamp kurtosis logicaland
    logicalor max median min percentilecont percentiledisc quantile regravgx regravgy regrcount
    regrintercept regrr2 regrslope skewness stddev stddevpop stddevsamp sum variance variancepop
""")
NAMED_TOTALS = _names("bool_and bool_or every total")
# Aggregates and window functions that return the value of one row, or a number.
PICKS = _names("""
    anyvalue argmax argmin cumedist denserank first firstvalue grouping lag last lastvalue lead
    mode nthvalue ntile percentrank rank rownumber
""")
# Their first argument, or the other one, says which part of the values: a list of parts is a list
# of results.
QUANTILES = _names("approxquantile percentilecont percentiledisc quantile")

# Aggregates of PostgreSQL that take a row, and collect. Source: its catalogue, pg_proc.
OF_WHOLE_ROWS = _names("array_agg json_agg json_agg_strict jsonb_agg jsonb_agg_strict")

# What they return for one row is no longer than what they are given, but for a number or a name.
KEEPING = _names("and case cast coalesce exists if nullif or trycast xor")
OF_ONE_ROW = KEEPING | _names("""
    abs acos addmonths array arraycontains arraycontainsall arrayfirst arraylast arraymax
    arraymin arrayoverlaps arrayposition arraysize arrayslice arraysum arraytostring ascii asin
    atan atan2 bitlength bitwisecount bytelength cbrt ceil chr collate columns concat concatws
    contains convert converttimezone cos cot currentcatalog currentdatabase currentdate
    currentdatetime currentrole currentschema currenttime currenttimestamp currenttimezone
    currentuser currentversion date dateadd datebin datediff datefromparts datestrtodate datesub
    datetime datetimeadd datetimediff datetimesub datetimetrunc datetodatestr datetrunc day
    dayname dayofmonth dayofweek dayofweekiso dayofyear degrees elt endswith exp extract floor
    format frombase64 fromjson greatest hex hour initcap isarray isinf isnan isnullvalue
    jsonarray jsonarraycontains jsonbcontains jsonbcontainstopkey jsonbexists jsonbextract
    jsonbextractscalar jsonexists jsonextract jsonextractarray jsonextractscalar jsonformat
    jsonkeys jsonobject jsonremove jsonset jsontype justifydays justifyhours justifyinterval
    lastday least left length levenshtein ln localtime localtimestamp log lower makeinterval md5
    md5digest minute month monthname monthsbetween negative normalize nvl2 overlay pad parsejson
    parsetime pi pow quarter radians rand regexpcount regexpextract regexpfullmatch regexpilike
    regexpinstr regexplike regexpreplace regexpsubstr replace reverse right round safedivide
    second sessionuser sha sha1digest sha2 sha2digest sign sin soundex split splitpart sqrt
    startswith stringtoarray strposition strtodate strtotime strtounix struct structextract
    stuff substring substringindex tan time timeadd timediff timefromparts timestamp
    timestampadd timestampdiff timestampfromparts timestampsub timestamptrunc timestrtodate
    timestrtotime timesub timetostr timetounix timetrunc tobase64 tochar todays tonumber
    translate trim trunc tsordsadd tsordsdiff tsordstodate tsordstodatestr tsordstodatetime
    tsordstotime tsordstotimestamp typeof unhex unicode unixdate unixmicros unixmillis
    unixseconds unixtostr unixtotime upper utcdate utctime utctimestamp uuid week weekofyear
    widthbucket year yearofweek yearofweekiso
""")
NAMED_OF_ONE_ROW = _names("""
    age array_length array_lower array_upper bin bit_count btrim cardinality changes char_length
    character_length charindex choose clock_timestamp coalesce conv crc32 current_database
    current_schema date date_bin date_format date_part datename datepart datetime decode div
    encode eomonth epoch epoch_ms find_in_set format_type from_days from_unixtime gcd
    gen_random_uuid glob hash host ifnull iif inet_aton inet_ntoa instr isdate isnull isnumeric
    json_array json_array_length json_build_array json_build_object json_contains
    json_contains_path json_depth json_extract json_insert json_keys json_length json_object
    json_patch json_pretty json_quote json_replace json_search json_set json_string
    json_structure json_typeof json_unquote json_valid json_value jsonb jsonb_array_length
    jsonb_build_array jsonb_build_object jsonb_pretty jsonb_set jsonb_strip_nulls jsonb_typeof
    julianday lcase len length likelihood likely list_contains list_count list_distinct
    list_position list_sort list_value locate log10 log2 ltrim make_date make_time
    make_timestamp make_timestamptz mid millisecond mod nanosecond newid now num_nonnulls
    num_nulls octet_length patindex period_add pg_column_size pg_database_size pg_get_userbyid
    pg_relation_size pg_size_pretty pg_table_size pg_total_relation_size pg_typeof
    plainto_tsquery position printf quote quote_ident quote_literal random regexp_like
    regexp_match row row_to_json rtrim scale sec_to_time similarity sqlite_version starts_with
    str str_to_date strcmp strftime strlen struct_pack subdate sysdatetime time time_bucket
    time_to_sec timediff timezone to_ascii to_json to_jsonb to_seconds to_timestamp to_tsquery
    to_tsvector trim_array truncate ts_rank ts_rank_cd txid_current ucase unaccent
    unix_timestamp unixepoch unlikely uuid version websearch_to_tsquery weekday xxhash64
""")

# They make rows of one value of a row, and it takes a LIMIT to bound these.
UNNESTS = _names("explode posexplode unnest")
NAMED_UNNESTS = _names("""
    json_array_elements json_array_elements_text json_object_keys jsonb_array_elements
    jsonb_array_elements_text jsonb_object_keys regexp_matches regexp_split_to_table
    string_to_table
""")
# They make rows of numbers or of one value, and stand in FROM.
TABLES = _names("explodinggenerateseries generateseries readcsv readparquet") | UNNESTS
NAMED_TABLES = NAMED_UNNESTS | _names("""
    generate_series generate_subscripts json_each json_each_text json_tree jsonb_each
    jsonb_each_text pragma_foreign_key_list pragma_index_info pragma_index_list
    pragma_table_info pragma_table_list pragma_table_xinfo range read_csv_auto
""")

ANYWHERE = OF_ONE_ROW | TOTALS | PICKS | UNNESTS
NAMED_ANYWHERE = NAMED_OF_ONE_ROW | NAMED_TOTALS | NAMED_UNNESTS
