// Sections of documents as rows of a narrow panel. A figure is its title and value, with its note and its change against
// the measure beside or below; a row of a table is its first cell and the change, or without one its last cell, with all
// of its cells in the tooltip. Nothing here knows a section by name. GUI thread only.
#pragma once

#include <functional>

#include "traces/report/document/document.h"
#include "widgets/panel/panel_parts.h"

namespace stagewright {

class FigureMeasure;

struct SectionRows {
    Units units;
    const FigureMeasure* measure = nullptr;       // what figures are compared with
    std::function<void(SpanId)> choose = {};      // of a row about an op, which then is a button
    QString chosen = {};                          // what that button does, for its tooltip
    std::function<void(const QString&)> act = {}; // on a row with an action, which then is a button; by its first cell

    void add(PanelSection& panel, const document::Section& section) const;
    void add(PanelSection& panel, const document::Figure& figure) const;
    void add(PanelSection& panel, const document::Table& table) const;
    void add(PanelSection& panel, const document::Sentences& sentences) const;
    // All its columns side by side, shares as points and times as a share of the value before; of several changes each
    // is below its value.
    void addGrid(PanelSection& panel, const document::Table& table) const;
};

// A figure, and a cell of a table, in the unit of time that the reader chose.
QString shownFigure(const document::Figure& figure, const Units& units);
QString shownCell(const document::Column& column, const document::Row& row, const TableCell& cell, const Units& units);
QString figureMeaning(const char* key); // of a figure of the report, as a sentence

} // namespace stagewright
