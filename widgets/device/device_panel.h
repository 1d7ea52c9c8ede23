// DevicePanel: what ran on the devices during the ops of one step, in three pages: kernels and copies by op, links
// between ranks, and the roofline of each kind of op. Each page shows tables of the report (document/section_view.h). GUI
// thread only.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <QWidget>

#include "traces/analysis/roofline.h"
#include "traces/report/tables.h"
#include "widgets/theme.h"

class QTabWidget;

namespace stagewright {

class FigureTable;
class PlotWidget;
class SectionView;

struct DeviceFigures {
    ReportTable kernels, launchGaps, links, roofline;
    std::vector<RooflineRow> rows; // of the plot; empty where there is none
    std::optional<Ceilings> ceilings;
    Units units;
};
DeviceFigures deviceFiguresOf(const Run& run, int step, const Units& units); // on any thread

class DevicePanel : public QWidget {
    Q_OBJECT
public:
    explicit DevicePanel(QWidget* parent = nullptr);
    void setFigures(std::shared_ptr<const DeviceFigures> figures); // null: no run is shown
    void setWorking();                                             // they are being computed
    void setTheme(const Theme& theme);
    FigureTable* table(int page); // the first of the page; null: it is unknown
    PlotWidget* plot() { return m_plot; }
    QTabWidget* pages() { return m_pages; }
    QString lineText() const; // of the page shown

signals:
    void spanChosen(stagewright::SpanId span); // of a kernel

private:
    static constexpr int count = 3;
    void say(const QString& line); // instead of all tables
    void show(int page, const std::vector<document::Section>& sections);

    QTabWidget* m_pages;
    std::array<QWidget*, count> m_bodies{}; // the views are in
    std::array<std::vector<SectionView*>, count> m_views;
    PlotWidget* m_plot = nullptr;
    const Theme* m_theme = &Theme::light();
    Units m_units;
};

} // namespace stagewright
