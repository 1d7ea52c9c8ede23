#include "app/cli/text/document_json.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "schedules/base/text.h"

namespace stagewright::document {

namespace {

using Path = std::vector<std::string_view>;

Path pathOf(std::string_view place) { return place.empty() ? Path() : split(place, "."); }

bool isWild(std::string_view part) { return part == "#" || part == "*"; }

Json& within(Json& at, std::string_view part)
{
    const bool index = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    return index ? at[static_cast<std::size_t>(wholeOf<int>(part).value_or(0))] : at[part];
}

Json& at(Json& object, std::string_view place)
{
    Json* found = &object;
    for (const std::string_view part : pathOf(place)) found = &within(*found, part);
    return *found;
}

Json numberJson(ColumnKind kind, double value, const Units& units)
{
    if (!std::isfinite(value)) return nullptr;
    switch (kind) {
    case ColumnKind::Time: return timeJson(std::llround(value), units);
    case ColumnKind::Size: return memoryJson(std::llround(value), units);
    case ColumnKind::Whole:
    case ColumnKind::Count: return std::llround(value);
    case ColumnKind::Truth: return value != 0;
    default: return value;
    }
}

Json cellJson(ColumnKind kind, TableCell&& cell, const Units& units)
{
    if (auto* text = std::get_if<std::string>(&cell)) return std::move(*text);
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
        if (kind == ColumnKind::Time) return timeJson(*whole, units);
        if (kind == ColumnKind::Size) return memoryJson(*whole, units);
        return kind == ColumnKind::Truth ? Json(*whole != 0) : Json(*whole);
    }
    const auto* real = std::get_if<double>(&cell);
    if (real == nullptr) return nullptr;
    return kind == ColumnKind::Time   ? units.timeValue(1) * *real
           : kind == ColumnKind::Size ? units.memoryValue(1) * *real
                                      : *real;
}

// A column's place: where its list or object is, and the path within that, of which the first part is wild.
struct ColumnPlace {
    std::size_t column;
    Path fixed, wild;
    Json* base = nullptr;
    bool ownKey = false; // "#.key", of a list that is new, and no other column's: appended to the row's object

    // One of several columns of an object in the row, such as "experiment.change".
    bool isPart() const { return wild.size() > 2 && !isWild(wild.back()); }
    bool sameGroup(const ColumnPlace& other) const
    {
        return other.base == base && other.wild.size() == wild.size() &&
               std::equal(wild.begin(), wild.end() - 1, other.wild.begin());
    }
};

void addTable(Json& object, Table&& table, const Units& units)
{
    std::vector<ColumnPlace> places;
    std::vector<std::string> texts; // what the paths point into
    texts.reserve(table.columns.size());
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        if (table.columns[c].key.empty() ||
            (table.place.empty() && table.columns[c].key.find('.') == std::string::npos))
            continue;
        texts.push_back(table.place.empty() ? table.columns[c].key : table.place + "." + table.columns[c].key);
        ColumnPlace place{c, pathOf(texts.back()), {}};
        const auto wild = std::find_if(place.fixed.begin(), place.fixed.end(), isWild);
        place.wild.assign(wild, place.fixed.end());
        place.fixed.erase(wild, place.fixed.end());
        if (!place.wild.empty()) places.push_back(std::move(place));
    }
    const auto baseOf = [&](const ColumnPlace& place) {
        Json* base = &object;
        for (const std::string_view part : place.fixed) base = &within(*base, part);
        return base;
    };
    for (const ColumnPlace& place : places) // all before any is filled: a new member moves its neighbours
        if (Json* base = baseOf(place); table.unknown.empty() && base->isNull())
            *base = place.wild.front() == "#" ? Json::array() : Json::object();
    if (!table.unknown.empty()) return;
    for (ColumnPlace& place : places) place.base = baseOf(place);
    for (ColumnPlace& place : places)
        place.ownKey = place.wild.size() == 2 && place.wild[0] == "#" && place.base->empty() &&
                       std::none_of(places.begin(), places.end(), [&place](const ColumnPlace& other) {
                           return &other != &place && (other.base != place.base || other.wild.size() < 2 ||
                                                       other.wild[0] != "#" || other.wild[1] == place.wild[1]);
                       });
    const bool named =
        std::any_of(places.begin(), places.end(), [](const auto& one) { return one.wild.front() == "*"; });
    if (!places.empty() && places.front().ownKey) places.front().base->reserve(table.rows.size());
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        Row row = std::move(table.rows[r]); // a table may be large: what is written of it is kept no longer
        const auto isKnown = [&](const ColumnPlace& place) {
            return !std::holds_alternative<std::monostate>(row.cells[place.column]);
        };
        const auto jsonOf = [&](const ColumnPlace& place) {
            const ColumnKind kind = table.columns[place.column].kind;
            return cellJson(row.kind && kind == ColumnKind::Real ? *row.kind : kind, std::move(row.cells[place.column]),
                            table.dataUnits.value_or(units));
        };
        const bool hasName = named && std::holds_alternative<std::string>(row.cells.front());
        const std::string name = hasName ? std::get<std::string>(row.cells.front()) : std::string();
        Json* own = nullptr; // the row's object
        for (const ColumnPlace& place : places) {
            if (place.ownKey) {
                if (own == nullptr) {
                    own = &(*place.base)[r];
                    own->reserve(places.size());
                }
                own->add(place.wild[1]) = jsonOf(place);
                continue;
            }
            if (place.wild.front() == "*" && !hasName) continue;
            // an object of which nothing is known is null itself
            const bool nothing = place.isPart() && std::none_of(places.begin(), places.end(), [&](const auto& other) {
                                     return other.sameGroup(place) && isKnown(other);
                                 });
            Json* found = place.base;
            for (std::size_t i = 0; i < place.wild.size() - (nothing ? 1 : 0); ++i)
                found = place.wild[i] == "#"   ? &(*found)[r]
                        : place.wild[i] == "*" ? &(*found)[name]
                                               : &within(*found, place.wild[i]);
            *found = nothing ? Json(nullptr) : jsonOf(place);
        }
    }
}

Json figureJson(const Figure& figure, const Units& units)
{
    if (!figure.unknown.empty()) return nullptr;
    if (figure.kind != ColumnKind::Size || figure.byRank.empty()) return numberJson(figure.kind, figure.value, units);
    Json values = Json::array();
    for (const double value : figure.byRank) values.push_back(numberJson(figure.kind, value, units));
    return values;
}

Json plotJson(const Plot& plot)
{
    if (plot.empty()) return nullptr;
    Json series = Json::array();
    for (const PlotSeries& one : plot.series) {
        Json points = Json::array();
        for (const PlotPoint& point : one.points) points.push_back(Json{point.x, point.y});
        series.push_back({{"title", one.title}, {"points", std::move(points)}});
    }
    return {{"across", plot.across.title}, {"up", plot.up.title}, {"series", std::move(series)}};
}

Json marksJson(const Marks& marks)
{
    const auto list = [](const std::vector<Marks::Stretch>& all) {
        Json out = Json::array();
        for (const Marks::Stretch& one : all)
            out.push_back(
                {{"rank", one.rank}, {"start_ns", one.start}, {"end_ns", one.end}, {"text", textOrNull(one.text)}});
        return out;
    };
    Json arrows = Json::array();
    for (const Marks::Arrow& arrow : marks.arrows)
        arrows.push_back({{"from_rank", arrow.from.rank},
                          {"from_ns", arrow.from.end},
                          {"to_rank", arrow.to.rank},
                          {"to_ns", arrow.to.start},
                          {"text", textOrNull(arrow.text)}});
    return {{"title", marks.title},
            {"spans", list(marks.spans)},
            {"gaps", list(marks.gaps)},
            {"arrows", std::move(arrows)}};
}

} // namespace

} // namespace stagewright::document

namespace stagewright {

Json timeJson(Nanos nanos, const Units& units) { return units.shares() ? Json(units.timeValue(nanos)) : Json(nanos); }

Json memoryJson(Bytes bytes, const Units& units)
{
    return units.memory != 1 ? Json(units.memoryValue(bytes)) : Json(bytes);
}

void addJson(Json& object, document::Section section, const Units& units)
{
    for (document::Element& element : section.elements) {
        if (const auto* figure = std::get_if<document::Figure>(&element)) {
            if (!figure->key.empty()) document::at(object, figure->key) = document::figureJson(*figure, units);
        } else if (auto* table = std::get_if<document::Table>(&element)) {
            document::addTable(object, std::move(*table), units);
        } else if (const auto* chart = std::get_if<document::Chart>(&element)) {
            if (!chart->place.empty()) document::at(object, chart->place) = document::plotJson(chart->plot);
        } else if (const auto* sentences = std::get_if<document::Sentences>(&element)) {
            if (!sentences->place.empty())
                document::at(object, sentences->place) = sentences->listed          ? Json(sentences->lines)
                                                         : sentences->lines.empty() ? Json(nullptr)
                                                                                    : Json(sentences->lines.front());
        } else if (const auto& marks = std::get<document::Marks>(element); !marks.place.empty()) {
            document::at(object, marks.place) = document::marksJson(marks);
        }
    }
}

Json documentJson(document::Document document)
{
    Json object = Json::object();
    for (document::Section& section : document.sections) addJson(object, std::move(section), document.units);
    return object;
}

} // namespace stagewright
